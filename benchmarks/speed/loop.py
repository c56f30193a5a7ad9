"""The course's training loop under a stopwatch, on workers that Horovod or torch.distributed has started.

`horovod` and `peer` are tasks for `on_workers` and `on_peers`: they differ in who exchanges gradients, and how.
"""

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
IMAGES = 8192  # to draw batches from
WARM_UPDATES = 3  # choose kernels, and fill Horovod's cache of what is exchanged
RATE = 0.01


def horovod(sleep: bool, groups: int | None, network: str, batch_size: int, updates: int) -> float:
    """On a Horovod worker: seconds of so many updates of `batch_size` images.

    `sleep`: wait for the gradients as the course does, not as Horovod does; `groups` as for hvd.DistributedOptimizer.
    """
    return train(sleep, groups, network, batch_size, updates)[1]


def several(ways: list[dict], **work) -> list[float]:
    """On a Horovod worker: the seconds of each of some ways, one after the other in one launch."""
    return [horovod(**way, **work) for way in ways]


def images_per_s(batch_size: int, updates: int, seconds: list[float]) -> float:
    """Images/s of all workers together, from the seconds that each took for its updates."""
    return sum(batch_size * updates / one for one in seconds)


def train(sleep: bool, groups: int | None, network: str, batch_size: int, updates: int) -> tuple[nn.Module, float]:
    """The trained network, and the seconds."""
    import horovod.torch as hvd

    from benchmarks.instruments import horovod_ops

    images, _ = horovod_ops.data("cpu", IMAGES, test_images=1)
    net = build(network)
    optimizer = SGD(net.parameters(), lr=RATE, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters(), groups=groups)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    data = endless(images, hvd.rank(), hvd.size(), batch_size)
    wait = workers.wait_for_gradients if sleep else no_wait  # without our wait Horovod's own one spins in `step`
    return net, seconds(net, optimizer, data, updates, horovod_ops.barrier, wait)


def peer(way: str, network: str, batch_size: int, updates: int) -> float:
    """The same on a process of torch.distributed. `way`: ddp; alone, without any exchange; or wait, which exchanges
    nothing either, but waits for the others before each update.
    """
    train, rank, size = gloo_processes.data(IMAGES), dist.get_rank(), dist.get_world_size()
    workers.use_device("cpu", rank, size)
    net = build(network)
    # By default it also sends batch norm's statistics before each forward pass, which neither ours nor stock does.
    wrapped = DistributedDataParallel(net, forward_sync_buffers=False) if way == "ddp" else net
    optimizer = SGD(net.parameters(), lr=RATE, momentum=0.9)
    data = endless(train, rank, size, batch_size)
    wait = (lambda optimizer: dist.barrier()) if way == "wait" else no_wait
    duration = seconds(wrapped, optimizer, data, updates, dist.barrier, wait)
    if way == "alone":
        _compute_on(net, optimizer, data)
    return duration


def no_wait(optimizer: Optimizer) -> None:
    """What is called before each step where nobody waits."""


def _compute_on(net: nn.Module, optimizer: Optimizer, data: Iterator) -> None:
    """Compute until all others are done as well: whoever came last would have a core for itself."""
    scheduler = LambdaLR(optimizer, lambda update: 1)
    done = dist.barrier(async_op=True)
    while not done.is_completed():
        training.train_epoch(net, optimizer, scheduler, itertools.islice(data, 1))


def build(network: str, seed: int = 0) -> nn.Module:
    """The network called so, its weights drawn with `seed`."""
    torch.manual_seed(seed)
    return NETWORKS[network]()


def endless(train: Split, rank: int, size: int, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """This worker's augmented batches, epoch after epoch, all of them whole."""
    for epoch in itertools.count():
        mine = shard(shuffle(len(train), 0, epoch), rank, size)
        yield from batches(train, mine[: len(mine) // batch_size * batch_size], batch_size, augment)


def seconds(
    net: nn.Module, optimizer: Optimizer, data: Iterator, updates: int, begin: Callable[[], object],
    wait: Callable[[Optimizer], None] = no_wait,
) -> float:  # fmt: skip
    """Seconds of so many updates, after WARM_UPDATES that do not count and `begin()`. `wait` precedes each step."""
    scheduler = LambdaLR(optimizer, lambda update: 1)
    training.train_epoch(net, optimizer, scheduler, itertools.islice(data, WARM_UPDATES), wait=wait)
    begin()
    started = time.perf_counter()
    training.train_epoch(net, optimizer, scheduler, itertools.islice(data, updates), wait=wait).item()
    return time.perf_counter() - started
