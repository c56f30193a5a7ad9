"""All-reduces that begin while backward() still runs: a hook on each parameter, without DistributedOptimizer."""

import time

import horovod.torch as hvd
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


class Averager:
    """Starts a parameter's all-reduce as soon as its gradient is complete; `wait` before the step."""

    def __init__(self, net: nn.Module):
        self.handles: list[int] = []
        for name, parameter in net.named_parameters():
            parameter.register_post_accumulate_grad_hook(self._starter(name))

    def _starter(self, name: str):
        def start(parameter: nn.Parameter) -> None:
            self.handles.append(hvd.allreduce_async_(parameter.grad, name=f"gradient.{name}", op=hvd.Average))

        return start

    def wait(self) -> None:
        for handle in self.handles:
            while not hvd.poll(handle):
                time.sleep(0.0003)
            hvd.synchronize(handle)
        self.handles.clear()


args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
hvd.init()
device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
torch.manual_seed(args.seed + hvd.rank())
train, test = load(args.data_dir, device, args.images)
net = ResNet9(width=16).to(device)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
averager = Averager(net)
optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
updates = args.epochs * updates_per_epoch(len(train), args.batch_size, hvd.size())
warmup = updates // 5
scheduler = LambdaLR(
    optimizer, lambda update: warmup_factor(update, warmup, hvd.size()) * decay_factor(update, warmup, updates)
)

record = training.Record(args, write=hvd.rank() == 0)
for epoch in range(args.epochs):
    net.train()
    total = torch.zeros(())
    mine = shard(shuffle(len(train), args.seed, epoch), hvd.rank(), hvd.size())
    for images, labels in batches(train, mine, args.batch_size, augment):
        optimizer.zero_grad()
        with workers.autocast(device):
            loss = cross_entropy(net(normalise(images)).float(), labels, label_smoothing=0.1)
        loss.backward()
        averager.wait()
        optimizer.step()
        scheduler.step()
        total += loss.detach().cpu() * len(labels)
    total = hvd.allreduce(total / len(mine))
    hvd.grouped_allreduce_(training.running_statistics(net))
    correct = training.count_correct(net, test, torch.arange(hvd.rank(), len(test), hvd.size()))
    record.add(scheduler.get_last_lr()[0], total, hvd.allreduce(correct, op=hvd.Sum) / len(test), len(train))
if hvd.rank() == 0:
    training.save(net, args.output_dir)
