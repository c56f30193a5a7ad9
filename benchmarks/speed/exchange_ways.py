"""Several ways to exchange what workers have learned. A worker measures how long a number of batches takes with each.

The ways differ in what is sent and when. The network, the data and the optimizer are the same.
"""

import itertools
import os
import time
from collections.abc import Callable

import horovod.torch as hvd
import psutil
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.optim import SGD

from benchmarks.instruments import horovod_ops
from benchmarks.speed import loop
from cifar.data import Split, normalise
from cifar.workers import wait_for_gradients

# The options of hvd.DistributedOptimizer, by the way.
OPTIONS = {
    "stock": {},
    "each": {},
    "group": {"groups": 1},
    "parts": {"groups": 4},
    "fp16": {"groups": 1, "compression": hvd.Compression.fp16},
    "large": {"groups": 1},
    "accumulate": {"groups": 1},
}


def seconds_per_image(ways: dict[str, int], batch_size: int, batches: int, rounds: int) -> dict[str, list[float]]:
    """Runs on a worker with one thread. Returns this worker's seconds per image, for each way and round.

    `ways` has the number of batches between two exchanges, by the way. A round has `batches` batches of `batch_size`
    images, which is a multiple of these numbers. One more round comes first and does not count.
    """
    train, _ = horovod_ops.data("cpu", loop.IMAGES, test_images=1)
    torch.set_num_threads(1)
    measured = {}
    for way, passes in ways.items():
        update = _update(way, passes, train, batch_size)
        times = [_seconds(update, batches // passes, exchanges=way != "alone") for _ in range(1 + rounds)]
        measured[way] = [seconds / (batches * batch_size) for seconds in times[1:]]
    return measured


def stay_on_one_core() -> None:
    """Keep all threads of this worker on one core, as if it had one GPU: the first worker on the first core, and so on.

    Raises RuntimeError if there are more workers than cores.
    """
    there = sorted(os.sched_getaffinity(0))
    if hvd.local_size() > len(there):
        raise RuntimeError(f"{hvd.local_size()} workers cannot have a core each: this machine has {len(there)}")
    for thread in psutil.Process().threads():
        os.sched_setaffinity(thread.id, {there[hvd.local_rank()]})


def _seconds(update: Callable[[], Tensor], count: int, *, exchanges: bool) -> float:
    """The seconds of so many updates. Without an exchange the worker then computes until all others are done, too."""
    horovod_ops.barrier()
    started = time.perf_counter()
    for _ in range(count):
        update()
    if exchanges:
        horovod_ops.barrier()
    seconds = time.perf_counter() - started
    if not exchanges:
        horovod_ops.compute_on(update, "end")
    return seconds


def _update(way: str, passes: int, train: Split, batch_size: int) -> Callable[[], Tensor]:
    """Return a function that trains on `passes` batches with one exchange, and returns the last loss."""
    net = loop.build("resnet9").train()
    optimizer = SGD(net.parameters(), lr=loop.RATE, momentum=0.9)
    if way in OPTIONS:
        options = OPTIONS[way] | ({"backward_passes_per_step": passes} if way == "accumulate" else {})
        optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters(), **options)
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    data = loop.endless(train, hvd.rank(), hvd.size(), batch_size * (passes if way == "large" else 1))
    wait = loop.no_wait if way == "stock" else wait_for_gradients

    def one_step(batches_of_it: int = 1) -> Tensor:
        optimizer.zero_grad()
        for images, labels in itertools.islice(data, batches_of_it):
            loss = F.cross_entropy(net(normalise(images)).float(), labels)
            (loss / batches_of_it).backward()
        wait(optimizer)
        optimizer.step()
        return loss.detach()

    def local_steps() -> Tensor:
        losses = [one_step() for _ in range(passes)]
        horovod_ops.wait(hvd.grouped_allreduce_async_([one.data for one in net.parameters()], name="weights"))
        return losses[-1]

    if way == "local":
        return local_steps
    return lambda: one_step(passes if way == "accumulate" else 1)
