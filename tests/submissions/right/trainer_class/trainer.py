"""The trainer: one object holds network, data and optimizer; `fit` runs all epochs and leaves the two files."""

import json
import time

import horovod.torch as hvd
import torch
from options import Options
from ramp import Ramp
from torch.nn.functional import cross_entropy

from cifar import workers
from cifar.data import augment, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9


class Trainer:
    """Trains one network on all workers."""

    def __init__(self, options: Options):
        self.options = options
        self.chief = hvd.rank() == 0
        self.device = workers.use_device("auto", hvd.local_rank(), hvd.local_size())
        torch.manual_seed(options.seed + hvd.rank())
        self.train_data, self.test_data = load(options.data_dir, self.device)
        self.net = ResNet9(width=16).to(self.device)
        hvd.broadcast_parameters(dict(self.net.named_parameters()), root_rank=0)
        sgd = torch.optim.SGD(
            self.net.parameters(), lr=options.base_rate, momentum=options.momentum, nesterov=True,
            weight_decay=options.weight_decay,
        )  # fmt: skip
        self.optimizer = hvd.DistributedOptimizer(sgd, named_parameters=self.net.named_parameters())
        last = options.epochs * updates_per_epoch(len(self.train_data), options.batch_size, hvd.size())
        self.ramp = Ramp(options.base_rate, options.base_rate * hvd.size(), last // 5, last)
        self.updates = 0

    def fit(self) -> None:
        for epoch in range(1, self.options.epochs + 1):
            started = time.perf_counter()
            loss = self.train_epoch(epoch)
            hvd.grouped_allreduce_([buffer for buffer in self.net.buffers() if buffer.is_floating_point()])
            accuracy = self.test()
            if self.chief:
                self.log(epoch, loss, accuracy, time.perf_counter() - started)
        if self.chief:
            self.save()

    def train_epoch(self, epoch: int) -> float:
        self.net.train()
        indices = shard(shuffle(len(self.train_data), self.options.seed, epoch), hvd.rank(), hvd.size())
        losses = [self.train_batch(part) for part in indices.split(self.options.batch_size)]
        return hvd.allreduce(torch.tensor(losses).mean(), name="train_loss").item()

    def train_batch(self, indices: torch.Tensor) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.ramp(self.updates)
        images, labels = self.train_data.batch(indices)
        with workers.autocast(self.device):
            logits = self.net(normalise(augment(images)))
        loss = cross_entropy(logits.float(), labels, label_smoothing=0.1)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        return loss.item()

    @torch.no_grad()
    def test(self) -> float:
        self.net.eval()
        hits = torch.zeros((), device=self.device)
        for part in torch.arange(len(self.test_data))[hvd.rank() :: hvd.size()].split(500):
            images, labels = self.test_data.batch(part)
            hits += (self.net(normalise(images)).argmax(1) == labels).sum()
        return hvd.allreduce(hits, name="hits", op=hvd.Sum).item() / len(self.test_data)

    def log(self, epoch: int, loss: float, accuracy: float, seconds: float) -> None:
        line = {
            "epoch": epoch, "lr": self.optimizer.param_groups[0]["lr"], "train_loss": loss, "test_accuracy": accuracy,
            "images_per_s": len(self.train_data) / seconds, "seconds": seconds,
        }  # fmt: skip
        with (self.options.output_dir / "metrics.jsonl").open("a") as file:
            print(json.dumps(line), file=file)
        print(f"[{epoch}/{self.options.epochs}] loss {loss:.3f}, accuracy {accuracy:.1%}")

    def save(self) -> None:
        state = {name: tensor.cpu() for name, tensor in self.net.state_dict().items()}
        torch.save(state, self.options.output_dir / "model.pt")
