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
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD

from benchmarks.instruments import horovod_ops
from benchmarks.instruments.simulated_workers import evaluate
from benchmarks.methods import compression
from benchmarks.speed import loop
from cifar.data import Split, normalise
from cifar.training import running_statistics
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
LOCAL = ("local", "diloco")  # Workers update alone, and exchange weights.
OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9  # of DiLoCo's own step, as in its paper, section 3.1
ONE_BUCKET = 1000  # megabytes, which is more than all gradients have


def seconds_per_image(ways: dict[str, int], batch_size: int, batches: int, rounds: int) -> dict[str, list[float]]:
    """Runs on a worker with one thread. Returns this worker's seconds per image, for each way and round.

    `ways` has the number of batches between two exchanges, by the way. A round has `batches` batches of `batch_size`
    images, which is a multiple of these numbers. One more round comes first and does not count.
    """
    train, _ = horovod_ops.data("cpu", loop.IMAGES, test_images=1)
    torch.set_num_threads(1)
    measured = {}
    with horovod_ops.torch_group():
        for way, passes in ways.items():
            update = Worker(way, passes, train, batch_size).update
            times = [_seconds(update, batches // passes, exchanges=way != "alone") for _ in range(1 + rounds)]
            measured[way] = [seconds / (batches * batch_size) for seconds in times[1:]]
    return measured


def accuracies(
    way: str, passes: int, batch_size: int, images: int, test_images: int, epochs: int, rate: float, seed: int
) -> list[float]:
    """Runs on a worker with one thread. Returns the test accuracy (0 to 1) after each epoch, on rank 0.

    Before each test, all workers take the mean of their running statistics. The other workers return nothing.
    """
    train, test = horovod_ops.data("cpu", images, test_images)
    torch.set_num_threads(1)
    torch.manual_seed(seed + hvd.rank())
    found = []
    with horovod_ops.torch_group():
        worker = Worker(way, passes, train, batch_size, rate, seed)
        for _ in range(epochs):
            for _ in range(images // (hvd.size() * batch_size * passes)):
                worker.update()
            for number, values in enumerate(running_statistics(worker.net)):
                values.copy_(horovod_ops.mean(values, f"statistics {number}"))
            if hvd.rank() == 0:
                found.append(evaluate(worker.net, test, "test")["test_accuracy"])
                worker.net.train()
            horovod_ops.barrier()
    return found


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


class Worker:
    """A worker that trains ResNet-9 in one of the ways, on its share of the images.

    `passes` is the number of batches between two exchanges. `rate` is the learning rate.
    """

    def __init__(self, way: str, passes: int, train: Split, batch_size: int, rate: float = loop.RATE, seed: int = 0):
        self.way, self.passes = way, passes
        self.net = loop.build("resnet9", seed).train()
        self.forward = DDP[way](self.net) if way in DDP else self.net
        self.optimizer = SGD(self.net.parameters(), lr=rate, momentum=0.9)
        if way in OPTIONS:
            options = OPTIONS[way] | ({"backward_passes_per_step": passes} if way == "accumulate" else {})
            self.optimizer = hvd.DistributedOptimizer(self.optimizer, self.net.named_parameters(), **options)
            hvd.broadcast_parameters(self.net.state_dict(), root_rank=0)
        size = batch_size * (passes if way == "large" else 1)
        self.data = loop.endless(train, hvd.rank(), hvd.size(), size, seed)
        self.average = {"stock": loop.no_wait, "topk": _largest_values(self.net)}.get(way, wait_for_gradients)
        self.outer = SGD(self.net.parameters(), lr=OUTER_RATE, momentum=OUTER_MOMENTUM, nesterov=True)

    def update(self) -> Tensor:
        """Train until the end of the next exchange. Returns the last loss."""
        if self.way in LOCAL:
            return self._local_updates()
        return self._one_update(self.passes if self.way == "accumulate" else 1)

    def _one_update(self, batches: int = 1) -> Tensor:
        self.optimizer.zero_grad()
        for images, labels in itertools.islice(self.data, batches):
            loss = F.cross_entropy(self.forward(normalise(images)).float(), labels)
            (loss / batches).backward()
        self.average(self.optimizer)
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def _local_updates(self) -> Tensor:
        """Update this worker alone, and then take the mean of the workers' weights.

        DiLoCo takes the way from the old weights to the mean as a gradient, and makes one step of its own with it
        (Douillard and others 2023, algorithm 1).
        """
        weights = list(self.net.parameters())
        before = [one.clone() for one in weights]
        for _ in range(self.passes):
            with torch.enable_grad():
                loss = self._one_update()
        horovod_ops.wait(hvd.grouped_allreduce_async_([one.data for one in weights], name="weights"))
        if self.way == "diloco":
            for one, old in zip(weights, before, strict=True):
                one.grad = old - one
                one.copy_(old)
            self.outer.step()
        return loss


def power_sgd_network(net: nn.Module) -> tuple[DistributedDataParallel, power_sgd.PowerSGDState]:
    """The network in DistributedDataParallel with PowerSGD, and what PowerSGD keeps from update to update.

    One bucket holds all gradients. With several buckets, the exchanges of PyTorch's PowerSGD over Gloo can wait for
    each other for ever.
    """
    wrapped = DistributedDataParallel(net, forward_sync_buffers=False, bucket_cap_mb=ONE_BUCKET)
    options = {"matrix_approximation_rank": compression.RANK, "start_powerSGD_iter": compression.FIRST_COMPRESSED}
    state = power_sgd.PowerSGDState(None, **options)
    wrapped.register_comm_hook(state, power_sgd.powerSGD_hook)
    return wrapped, state


# PyTorch exchanges the gradients of these ways. It also copies rank 0's weights to all workers.
DDP = {
    "ddp": lambda net: DistributedDataParallel(net, forward_sync_buffers=False),
    "powersgd": lambda net: power_sgd_network(net)[0],
}


def _largest_values(net: nn.Module) -> Callable[[SGD], None]:
    """A function that replaces the gradients by the mean of the workers' largest values."""
    top_k, parameters = compression.TopK(horovod_ops.gather), list(net.parameters())

    def average(optimizer: SGD) -> None:
        mean = top_k.mean(horovod_ops.flat([parameter.grad for parameter in parameters]))
        for parameter, part in zip(parameters, mean.split([one.numel() for one in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)

    return average
