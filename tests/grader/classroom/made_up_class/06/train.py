"""Four workers train one ResNet-9 together, with Horovod.

    horovodrun -np 4 python train.py --data-dir D --output-dir O --epochs E --batch-size B --seed S

The program is a chain of small functions: settings -> pieces (net, optimizer, scheduler) -> a stream of epoch results.
Only `main` touches files and the process-wide state.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from cifar import cli, training, workers
from cifar.data import Split, augment, batches, load, normalise, shard, shuffle, updates_per_epoch
from cifar.model import ResNet9
from cifar.schedule import decay_factor, warmup_factor

Batch = tuple[Tensor, Tensor]
Update = Callable[[Tensor, Tensor], tuple[Tensor, int]]


@dataclass(frozen=True)
class Defaults:
    """Defaults of the command line."""

    epochs: int = 8
    batch_size: int = 128  # per worker
    lr: float = 0.1  # for one worker


@dataclass(frozen=True)
class Recipe:
    """What the command line does not set."""

    width: int = 16
    momentum: float = 0.9
    weight_decay: float = 5e-4
    label_smoothing: float = 0.1
    warmup_share: float = 0.2  # of all updates


@dataclass(frozen=True)
class Plan:
    """The run as this worker sees it."""

    rank: int
    size: int
    epochs: int
    batch_size: int
    lr: float
    seed: int


class EpochResult(NamedTuple):
    """One line of the metrics, about all workers. The order is that of `Record.add`."""

    rate: float
    loss: Tensor
    accuracy: Tensor
    images: int


# --- the learning rate ------------------------------------------------------------------------------------------------


def warmup_length(updates: int, share: float) -> int:
    """At least one update of warmup, but at least one update is left for the decay."""
    return min(max(1, round(share * updates)), updates - 1)


def rate_factor(updates: int, warmup: int, size: int) -> Callable[[int], float]:
    """From 1 up to `size` during warmup, then linearly down to 0 at the last update."""
    return lambda update: warmup_factor(update, warmup, size) * decay_factor(update, warmup, updates)


# --- the pieces -------------------------------------------------------------------------------------------------------


def shared_network(recipe: Recipe, device: torch.device) -> nn.Module:
    """Each worker draws its own weights (the seeds differ), and then worker 0's replace them everywhere."""
    net = ResNet9(width=recipe.width).to(device)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    return net


def shared_optimizer(net: nn.Module, recipe: Recipe, lr: float) -> Optimizer:
    """SGD that applies the mean gradient of all workers. `groups=1` sends all gradients in one go."""
    local = SGD(net.parameters(), lr=lr, momentum=recipe.momentum, nesterov=True, weight_decay=recipe.weight_decay)
    return hvd.DistributedOptimizer(local, named_parameters=net.named_parameters(), groups=1)


def make_update(net: nn.Module, optimizer: Optimizer, scheduler: LambdaLR, label_smoothing: float) -> Update:
    """Close over everything that an update needs except for the batch."""

    def update(images: Tensor, labels: Tensor) -> tuple[Tensor, int]:
        with workers.autocast(images.device):
            logits = net(normalise(images)).float()
            loss = F.cross_entropy(logits, labels, label_smoothing=label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        workers.wait_for_gradients(optimizer)
        optimizer.step()
        scheduler.step()
        return loss.detach() * len(labels), len(labels)

    return update


# --- data -------------------------------------------------------------------------------------------------------------


def my_images(plan: Plan, count: int, epoch: int) -> Tensor:
    """All workers make the same shuffle (same seed), and each takes its part. The parts are equally long."""
    return shard(shuffle(count, plan.seed, epoch), plan.rank, plan.size)


def my_test_images(plan: Plan, count: int) -> Tensor:
    """Every test image belongs to exactly one worker. These parts need not be equally long."""
    return torch.arange(plan.rank, count, plan.size)


# --- one epoch, and all of them ---------------------------------------------------------------------------------------


def train_part(update: Update, data: Iterable[Batch]) -> Tensor:
    """The mean loss over this worker's images."""
    losses, counts = zip(*(update(images, labels) for images, labels in data))
    return sum(losses) / sum(counts)


def average_statistics(net: nn.Module) -> None:
    """Give all workers the same running statistics of batch norm: the mean of everybody's."""
    hvd.grouped_allreduce_(training.running_statistics(net), op=hvd.Average)


def accuracy_of_all(net: nn.Module, test: Split, plan: Plan) -> Tensor:
    """Counts are summed, not accuracies averaged."""
    correct = training.count_correct(net, test, my_test_images(plan, len(test)))
    return hvd.allreduce(correct, op=hvd.Sum) / len(test)


def run_epochs(
    plan: Plan, net: nn.Module, update: Update, current_rate: Callable[[], float], train: Split, test: Split
) -> Iterator[EpochResult]:
    """Train lazily: an epoch runs when the caller asks for its result."""
    for epoch in range(plan.epochs):
        net.train()  # counting right answers switches to evaluation
        mine = my_images(plan, len(train), epoch)
        loss = train_part(update, batches(train, mine, plan.batch_size, augment))
        average_statistics(net)
        yield EpochResult(
            rate=current_rate(),
            loss=hvd.allreduce(loss, op=hvd.Average),  # right because all parts are equally long
            accuracy=accuracy_of_all(net, test, plan),
            images=len(mine) * plan.size,
        )


def main(defaults: Defaults = Defaults(), recipe: Recipe = Recipe()) -> None:
    args = cli.parse(__doc__, epochs=defaults.epochs, batch_size=defaults.batch_size, lr=defaults.lr)
    hvd.init()
    device = workers.use_device(args.device, hvd.local_rank(), hvd.local_size())
    plan = Plan(hvd.rank(), hvd.size(), args.epochs, args.batch_size, args.lr, args.seed)
    torch.manual_seed(plan.seed + plan.rank)  # other distortions on each worker

    train, test = load(args.data_dir, device, args.images, args.test_images)
    net = shared_network(recipe, device)
    optimizer = shared_optimizer(net, recipe, plan.lr)
    updates = plan.epochs * updates_per_epoch(len(train), plan.batch_size, plan.size)
    factor = rate_factor(updates, warmup_length(updates, recipe.warmup_share), plan.size)
    scheduler = LambdaLR(optimizer, factor)
    update = make_update(net, optimizer, scheduler, recipe.label_smoothing)

    is_writer = plan.rank == 0
    record = training.Record(args, write=is_writer)
    for result in run_epochs(plan, net, update, lambda: scheduler.get_last_lr()[0], train, test):
        record.add(*result)
    if is_writer:
        training.save(net, args.output_dir)


if __name__ == "__main__":
    main()
