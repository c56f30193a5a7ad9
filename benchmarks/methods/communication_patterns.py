"""Four ways for workers to compute their mean gradient with messages between processes. `measure` compares them.

`ring`: chunks of the gradient go from neighbour to neighbour. `replica`: every worker sends its gradient to all others.
`server`: every worker sends its gradient to worker 0, which sends the mean back. New weights would be as many bytes.
`central`: every worker sends worker 0 its activations, from which the gradients are computed. Worker 0 does all the
back-propagation.
"""

import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from benchmarks.instruments.byte_counter import Wire, kernel_received
from benchmarks.instruments.gloo_processes import data
from cifar.data import normalise, shard, shuffle
from cifar.model import BootcampResNet

IMAGES = 10_000  # training images from which the batches are drawn: more than any experiment's global batch

Batch = tuple[Tensor, Tensor]  # normalised images (B, 3, 32, 32) and labels (B,)
Update = Callable[[Wire, int, int, nn.Module, Batch], Tensor]  # returns the mean gradient of all workers as one vector


def gradient(net: nn.Module, batch: Batch) -> Tensor:
    """The gradient of the mean loss over a batch, as one vector."""
    loss = F.cross_entropy(net(batch[0]), batch[1])
    return _vector(torch.autograd.grad(loss, list(net.parameters())))


def _vector(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def server(wire: Wire, rank: int, size: int, net: nn.Module, batch: Batch) -> Tensor:
    """Each worker computes its gradient, and worker 0 computes their mean."""
    mine = gradient(net, batch)
    if rank > 0:
        wire.send(mine, 0).wait()
        return wire.receive(mine, 0)
    for sender in range(1, size):
        mine += wire.receive(mine, sender)
    mine /= size
    _to_all(wire, mine, rank, size)
    return mine


def replica(wire: Wire, rank: int, size: int, net: nn.Module, batch: Batch) -> Tensor:
    """Each worker computes its gradient, sends it to all others, and computes the mean of all gradients."""
    mine = gradient(net, batch)
    works = [wire.send(mine, other) for other in range(size) if other != rank]
    total = mine.clone()
    for other in range(size):
        if other != rank:
            total += wire.receive(mine, other)
    for work in works:
        work.wait()
    return total / size


def ring(wire: Wire, rank: int, size: int, net: nn.Module, batch: Batch) -> Tensor:
    """Each worker computes its gradient and divides it into chunks.

    The sums of the chunks grow while they go round the ring. Then the full sums go round the ring once more.
    """
    mine = gradient(net, batch)
    chunks = list(mine.tensor_split(size))
    for step in range(size - 1):
        chunks[(rank - 1 - step) % size] += _pass_on(wire, rank, size, chunks, rank - step)
    for step in range(size - 1):
        chunks[(rank - step) % size].copy_(_pass_on(wire, rank, size, chunks, rank + 1 - step))
    return mine / size


def _pass_on(wire: Wire, rank: int, size: int, chunks: list[Tensor], sent: int) -> Tensor:
    """Send chunk `sent` to the next worker, and receive chunk `sent - 1` from the previous worker."""
    work = wire.send(chunks[sent % size], (rank + 1) % size)
    received = wire.receive(chunks[(sent - 1) % size], (rank - 1) % size)
    work.wait()
    return received


def central(wire: Wire, rank: int, size: int, net: nn.Module, batch: Batch) -> Tensor:
    """Each worker computes only activations. Worker 0 back-propagates for all, and sends the mean gradient."""
    tape = Tape(net)
    with tape:
        loss = F.cross_entropy(net(batch[0]), batch[1])
    parameters = list(net.parameters())
    if rank > 0:
        for activation in tape.saved:
            wire.send(activation.contiguous(), 0).wait()
        return wire.receive(_vector(tuple(parameters)).detach(), 0)
    own, total = list(tape.saved), 0
    for worker in range(size):
        if worker > 0:
            tape.saved = [wire.receive(activation, worker) for activation in own]
        total = total + _vector(torch.autograd.grad(loss, parameters, retain_graph=True))
    mean = total / size
    _to_all(wire, mean, rank, size)
    return mean


class Tape(saved_tensors_hooks):
    """Keeps in `saved` the tensors that a forward pass stores for the backward pass.

    Each tensor is kept once, and the weights are not kept. All workers have equal networks. If `saved` is replaced by
    that of another worker, the backward pass therefore gives that worker's gradient.
    """

    def __init__(self, net: nn.Module):
        self.saved: list[Tensor] = []
        weights = {parameter.data_ptr() for parameter in net.parameters()}
        places: dict[tuple, int] = {}

        def pack(tensor: Tensor) -> Tensor | int:
            if tensor.data_ptr() in weights:
                return tensor
            key = (tensor.data_ptr(), tensor.shape, tensor.stride())
            if key not in places:
                places[key] = len(self.saved)
                self.saved.append(tensor)
            return places[key]

        super().__init__(pack, lambda kept: self.saved[kept] if isinstance(kept, int) else kept)


def _to_all(wire: Wire, tensor: Tensor, rank: int, size: int) -> None:
    for work in [wire.send(tensor, other) for other in range(size) if other != rank]:
        work.wait()


UPDATES: dict[str, Update] = {"central": central, "server": server, "replica": replica, "ring": ring}


def sizes(most: int) -> list[int]:
    """The numbers of workers that are compared: the powers of two from 2 up to `most`."""
    return [2**power for power in range(1, most.bit_length()) if 2**power <= most]


def each_size(line: Callable[[dist.ProcessGroup], dict]) -> list[dict | None]:
    """Call `line` on each process, for groups of the first 2, 4, ... workers. Returns one result per group.

    The result is None for a group to which this process does not belong.
    """
    lines = []
    for size in sizes(dist.get_world_size()):
        group = dist.new_group(list(range(size)))
        lines.append(line(group) if dist.get_rank() < size else None)
        dist.barrier()  # processes outside the group wait here
    return lines


def measure(batch_size: int, updates: int, seed: int) -> dict[str, list[dict | None]]:
    """Measure each way on each process: bytes, seconds and error, one line per number of workers.

    `batch_size` is that of one worker.
    """
    return {way: each_size(partial(_line, update, batch_size, updates, seed)) for way, update in UPDATES.items()}


def _line(update: Update, batch_size: int, updates: int, seed: int, group: dist.ProcessGroup) -> dict:
    """Bytes per update, the seconds of each update, and the relative error of the mean gradient."""
    rank, size, seconds = group.rank(), group.size(), []
    net, batch = _prepared(batch_size, seed, rank, size)
    error = _error(update(Wire(), rank, size, net, batch), net, batch, group)
    wire, before = Wire(), kernel_received()
    for _ in range(updates):
        dist.barrier(group)
        started = time.perf_counter()
        update(wire, rank, size, net, batch)
        dist.barrier(group)
        seconds.append(time.perf_counter() - started)
    after = kernel_received()
    kernel = None if before is None or after is None else (after - before) / updates
    line = {"sent": wire.sent / updates, "received": wire.received / updates, "kernel_received": kernel}
    return line | {"seconds": seconds, "error": error}


def _prepared(batch_size: int, seed: int, rank: int, size: int) -> tuple[nn.Module, Batch]:
    """The same network on each worker, and a batch of CIFAR-10 images that belongs to this worker alone."""
    torch.manual_seed(seed)
    net = BootcampResNet()
    split = data(IMAGES)
    images, labels = split.batch(shard(shuffle(len(split), seed, 0), rank, size)[:batch_size])
    return net, (normalise(images).contiguous(), labels)


def _error(found: Tensor, net: nn.Module, batch: Batch, group: dist.ProcessGroup) -> float:
    """The distance from the mean that PyTorch's own all-reduce computes, divided by the length of that mean."""
    mean = gradient(net, batch)
    dist.all_reduce(mean, group=group)
    mean /= group.size()
    return ((found - mean).norm() / mean.norm()).item()
