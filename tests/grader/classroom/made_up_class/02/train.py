"""Train one ResNet-9 on CIFAR-10 with several Horovod workers.

Run it with:  horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

B is the number of images one worker uses for one update, so the global batch has B * (number of workers) images.
"""

import argparse

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import Split, augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor


class WarmupThenDecay:
    """The factor of the base learning rate as a function of the update.

    It climbs linearly from 1 to the number of workers, and then falls linearly to 0 at the last update.
    """

    def __init__(self, total_updates: int, num_workers: int, warmup_fraction: float = 0.2) -> None:
        """Set up the schedule; `warmup_fraction` is the share of all updates that is used to warm up."""
        self.total_updates = total_updates
        self.num_workers = num_workers
        self.warmup_updates = int(warmup_fraction * total_updates)

    def __call__(self, update: int) -> float:
        """Return the factor for this update, counted from 0."""
        warmup = warmup_factor(update, self.warmup_updates, self.num_workers)
        return warmup * decay_factor(update, self.warmup_updates, self.total_updates)


class Trainer:
    """One of the workers that train a network together.

    Every worker makes a Trainer and calls the same methods in the same order, because many of them communicate.
    """

    MOMENTUM: float = 0.9
    WEIGHT_DECAY: float = 5e-4
    LABEL_SMOOTHING: float = 0.1

    def __init__(self, args: argparse.Namespace) -> None:
        """Load the data and build the network, the optimizer and the schedule. Horovod must be initialised."""
        self.args: argparse.Namespace = args
        self.rank: int = hvd.rank()
        self.size: int = hvd.size()
        self.device: torch.device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())

        # Each worker has its own random numbers for the augmentation. The initial weights differ as well because of
        # this, but they are broadcast below.
        torch.manual_seed(args.seed + self.rank)

        self.train_split: Split
        self.test_split: Split
        self.train_split, self.test_split = load(args.data_dir, self.device, args.images, args.test_images)

        self.net: nn.Module = self._build_network()
        self.criterion: nn.Module = nn.CrossEntropyLoss(label_smoothing=self.LABEL_SMOOTHING)
        self.optimizer: Optimizer = self._build_optimizer()
        self.scheduler: LambdaLR = self._build_scheduler()
        self.record = training.Record(args, write=self.is_chief)

    @property
    def is_chief(self) -> bool:
        """Whether this is the one worker that writes files."""
        return self.rank == 0

    # ---------------------------------------------------------------- set-up

    def _build_network(self) -> nn.Module:
        """Return the network with worker 0's weights and buffers."""
        net = ResNet9(width=16).to(self.device)
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        return net

    def _build_optimizer(self) -> Optimizer:
        """Return SGD that applies the mean of all workers' gradients.

        SGD has no momentum buffers before its first step, so there is no optimizer state to broadcast.
        """
        sgd = SGD(
            self.net.parameters(),
            lr=self.args.lr,
            momentum=self.MOMENTUM,
            nesterov=True,
            weight_decay=self.WEIGHT_DECAY,
        )
        return hvd.DistributedOptimizer(
            sgd, named_parameters=self.net.named_parameters(), op=hvd.Average, groups=1
        )

    def _build_scheduler(self) -> LambdaLR:
        """Return the schedule of the learning rate. It moves once per update."""
        per_epoch = updates_per_epoch(len(self.train_split), self.args.batch_size, self.size)
        return LambdaLR(self.optimizer, WarmupThenDecay(self.args.epochs * per_epoch, self.size))

    # -------------------------------------------------------------- training

    def train_step(self, images: Tensor, labels: Tensor) -> Tensor:
        """Make one update together with the other workers, and return this worker's loss on its batch."""
        self.optimizer.zero_grad()
        with workers.autocast(self.device):
            logits = self.net(normalise(images)).float()
            loss = self.criterion(logits, labels)
        loss.backward()
        workers.wait_for_gradients(self.optimizer)
        self.optimizer.step()
        self.scheduler.step()
        return loss.detach()

    def train_epoch(self, indices: Tensor) -> Tensor:
        """Train on the images at `indices`, this worker's shard, and return its mean loss per image."""
        self.net.train()
        loss_sum = torch.zeros((), device=self.device)
        for images, labels in batches(self.train_split, indices, self.args.batch_size, augment):
            loss_sum += self.train_step(images, labels) * len(labels)
        return loss_sum / len(indices)

    def synchronise_batch_norm(self) -> None:
        """Replace the running means and variances by their averages over the workers."""
        for number, statistic in enumerate(training.running_statistics(self.net)):
            hvd.allreduce_(statistic, op=hvd.Average, name=f"running_statistic.{number}")

    # ------------------------------------------------------------ evaluation

    def evaluate(self) -> Tensor:
        """Return the accuracy on all test images. Each worker tests its part, and the counts are summed."""
        # The parts may differ by one image here. That is no problem, as there is only one exchange, after the loop.
        my_part = torch.arange(self.rank, len(self.test_split), self.size)
        my_correct = training.count_correct(self.net, self.test_split, my_part)
        correct = hvd.allreduce(my_correct, op=hvd.Sum, name="correct")
        return correct / len(self.test_split)

    # ------------------------------------------------------------------- run

    def run_epoch(self, epoch: int) -> None:
        """Train for one epoch, test the network, and record what all workers did."""
        order = shuffle(len(self.train_split), self.args.seed, epoch)  # the same on all workers
        my_indices = shard(order, self.rank, self.size)
        my_loss = self.train_epoch(my_indices)
        self.synchronise_batch_norm()

        # The shards are equally long, so the mean of the workers' means is the mean over all images.
        loss = hvd.allreduce(my_loss, op=hvd.Average, name="loss")
        accuracy = self.evaluate()
        self.record.add(self.scheduler.get_last_lr()[0], loss, accuracy, len(my_indices) * self.size)

    def save(self) -> None:
        """Write the network to a file, on one worker only."""
        if self.is_chief:
            training.save(self.net, self.args.output_dir)

    def run(self) -> None:
        """Train for all epochs and save the network."""
        for epoch in range(self.args.epochs):
            self.run_epoch(epoch)
        self.save()


def main() -> None:
    """Read the options, start Horovod and train."""
    args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
    hvd.init()
    Trainer(args).run()


if __name__ == "__main__":
    main()
