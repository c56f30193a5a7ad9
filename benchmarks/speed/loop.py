"""Measures the time of the course's training loop, on workers that Horovod or torch.distributed has started.

`horovod` is a task for `on_workers`, and `peer` is a task for `on_peers`. They differ only in how gradients are
exchanged.
"""

import functools
import itertools
import time
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from benchmarks.instruments import gloo_processes
from cifar import training, workers
from cifar.data import Split, augment, batches, shard, shuffle
from cifar.model import BootcampResNet, ResNet9

NETWORKS: dict[str, Callable[[], nn.Module]] = {"resnet9": ResNet9, "bootcamp": BootcampResNet}
NAMES = {"resnet9": "ResNet-9", "bootcamp": "the bootcamp's ResNet"}
IMAGES = 8192  # training images from which the batches are drawn
BYTES = 4  # of a value of a gradient
WARM_UPDATES = 3  # updates that do not count: kernels are chosen, and Horovod's cache of exchanges is filled
RATE = 0.01  # learning rate, the same in all ways; the time of an update does not depend on it


def horovod(sleep: bool, groups: int | None, network: str, batch_size: int, updates: int) -> float:
    """Runs on a Horovod worker. Returns the seconds of `updates` updates with `batch_size` images each.

    If `sleep` is true, the worker waits for the gradients as the course does, otherwise as Horovod does. `groups` is
    that of hvd.DistributedOptimizer.
    """
    return train(sleep, groups, network, batch_size, updates)[1]


def several(ways: list[dict], **work) -> list[float]:
    """Runs on a Horovod worker. Measures each of the ways, one after the other, and returns their seconds."""
    return [horovod(**way, **work) for way in ways]


def images_per_s(batch_size: int, updates: int, seconds: list[float]) -> float:
    """The images/s of all workers together. `seconds` holds the time that each worker took for its updates."""
    return sum(batch_size * updates / one for one in seconds)


def train(sleep: bool, groups: int | None, network: str, batch_size: int, updates: int) -> tuple[nn.Module, float]:
    """Train as `horovod` does. Returns the trained network and the seconds."""
    import horovod.torch as hvd

    from benchmarks.instruments import horovod_ops

    images, _ = horovod_ops.data("cpu", IMAGES, test_images=1)
    net = build(network)
    optimizer = SGD(net.parameters(), lr=RATE, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters(), groups=groups)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    data = endless(images, hvd.rank(), hvd.size(), batch_size)
    wait = workers.wait_for_gradients if sleep else no_wait  # `step` then waits in a busy loop
    return net, seconds(net, optimizer, data, updates, horovod_ops.barrier, wait)


def peer(way: str, network: str, batch_size: int, updates: int) -> float:
    """Runs on a process of torch.distributed. Returns the seconds of `updates` updates.

    `way` is `ddp`, `alone` or `wait`. `ddp` exchanges gradients with DistributedDataParallel. `alone` exchanges
    nothing. `wait` exchanges no gradients either, but waits for the other processes before each step of the optimizer.
    """
    train, rank, size = gloo_processes.data(IMAGES), dist.get_rank(), dist.get_world_size()
    workers.use_device("cpu", rank, size)
    net = build(network)
    # By default DDP also sends batch norm's statistics before each forward pass. Neither our loop nor stock Horovod
    # does so.
    wrapped = DistributedDataParallel(net, forward_sync_buffers=False) if way == "ddp" else net
    optimizer = SGD(net.parameters(), lr=RATE, momentum=0.9)
    data = endless(train, rank, size, batch_size)
    wait = (lambda optimizer: dist.barrier()) if way == "wait" else workers.wait_for_gradients
    duration = seconds(wrapped, optimizer, data, updates, dist.barrier, wait)
    if way == "alone":
        _compute_on(net, optimizer, data)
    return duration


def no_wait(optimizer: Optimizer) -> None:
    """Do nothing. This is the `wait` of a worker that does not wait before a step."""


def _compute_on(net: nn.Module, optimizer: Optimizer, data: Iterator) -> None:
    """Compute until all processes are done.

    If the others only waited, the last process would have a core for itself and would be measured too fast.
    """
    scheduler = LambdaLR(optimizer, lambda update: 1)
    done = dist.barrier(async_op=True)
    while not done.is_completed():
        training.train_epoch(net, optimizer, scheduler, itertools.islice(data, 1))


def build(network: str, seed: int = 0) -> nn.Module:
    """The network with this name. Its weights are drawn with `seed`."""
    torch.manual_seed(seed)
    return NETWORKS[network]()


def gradient_bytes(network: str) -> int:
    """The bytes of all gradients of the network with this name."""
    return BYTES * sum(shape.numel() for shape in gradient_shapes(network))


@functools.cache
def gradient_shapes(network: str) -> tuple[torch.Size, ...]:
    """The shapes of all gradients of the network with this name."""
    with torch.device("meta"):  # No weights are drawn.
        return tuple(parameter.shape for parameter in NETWORKS[network]().parameters())


def endless(train: Split, rank: int, size: int, batch_size: int, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield this worker's augmented batches, epoch after epoch. Incomplete batches are left out."""
    for epoch in itertools.count():
        mine = shard(shuffle(len(train), seed, epoch), rank, size)
        yield from batches(train, mine[: len(mine) // batch_size * batch_size], batch_size, augment)


def seconds(
    net: nn.Module, optimizer: Optimizer, data: Iterator, updates: int, begin: Callable[[], object],
    wait: Callable[[Optimizer], None] = workers.wait_for_gradients,
) -> float:  # fmt: skip
    """The seconds of `updates` updates.

    WARM_UPDATES updates and a call of `begin()` come first and do not count. `wait` is called before each step of the
    optimizer.
    """
    scheduler = LambdaLR(optimizer, lambda update: 1)
    training.train_epoch(net, optimizer, scheduler, itertools.islice(data, WARM_UPDATES), wait=wait)
    begin()
    started = time.perf_counter()
    training.train_epoch(net, optimizer, scheduler, itertools.islice(data, updates), wait=wait).item()
    return time.perf_counter() - started
