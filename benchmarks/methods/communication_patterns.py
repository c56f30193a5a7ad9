"""Four ways for workers to come by their mean gradient, by messages from process to process; measured by `measure`.

`ring`: in chunks, from neighbour to neighbour. `replica`: every worker sends its gradient to all others. `server`: to
worker 0, which sends the mean back (new weights would be as many bytes). `central`: worker 0 gets not the gradients but
what they are computed from, the activations, and does all the back-propagation.
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

IMAGES = 10_000

Batch = tuple[Tensor, Tensor]  # normalised images and labels
Update = Callable[[Wire, int, int, nn.Module, Batch], Tensor]  # the mean gradient of all workers, one vector


def gradient(net: nn.Module, batch: Batch) -> Tensor:
    """Gradient of the mean loss over a batch, one vector."""
    loss = F.cross_entropy(net(batch[0]), batch[1])
    return _vector(torch.autograd.grad(loss, list(net.parameters())))


def _vector(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def server(wire: Wire, rank: int, size: int, net: nn.Module, batch: Batch) -> Tensor:
    """Each worker computes its gradient, worker 0 the mean."""
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
    """Each worker computes its gradient, sends it to all, and computes the mean of what it gets."""
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
    """Each worker computes its gradient; sums of its chunks grow round the ring, then the full sums go round."""
    mine = gradient(net, batch)
    chunks = list(mine.tensor_split(size))
    for step in range(size - 1):
        chunks[(rank - 1 - step) % size] += _pass_on(wire, rank, size, chunks, rank - step)
    for step in range(size - 1):
        chunks[(rank - step) % size].copy_(_pass_on(wire, rank, size, chunks, rank + 1 - step))
    return mine / size


def _pass_on(wire: Wire, rank: int, size: int, chunks: list[Tensor], sent: int) -> Tensor:
    """Send chunk `sent` to the next worker, and receive the chunk before it from the one before."""
    work = wire.send(chunks[sent % size], (rank + 1) % size)
    received = wire.receive(chunks[(sent - 1) % size], (rank - 1) % size)
    work.wait()
    return received


def central(wire: Wire, rank: int, size: int, net: nn.Module, batch: Batch) -> Tensor:
    """Each worker computes activations only; worker 0 back-propagates for all, and sends the mean gradient."""
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
    """Keeps in `saved` what a forward pass leaves for the backward pass, each tensor once, and not the weights.

    Whoever replaces `saved` by another worker's differentiates that worker's forward pass: all networks are equal.
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
    """The numbers of workers that are compared: 2, 4, ... up to `most`."""
    return [2**power for power in range(1, most.bit_length()) if 2**power <= most]


def each_size(line: Callable[[dist.ProcessGroup], dict]) -> list[dict | None]:
    """On each process: what `line` returns for the first 2, 4, ... workers as a group; None where it is not of them."""
    lines = []
    for size in sizes(dist.get_world_size()):
        group = dist.new_group(list(range(size)))
        lines.append(line(group) if dist.get_rank() < size else None)
        dist.barrier()  # the others wait
    return lines


def measure(batch_size: int, updates: int, seed: int) -> dict[str, list[dict | None]]:
    """On each process: bytes, seconds and error of each way, by number of workers."""
    return {way: each_size(partial(_line, update, batch_size, updates, seed)) for way, update in UPDATES.items()}


def _line(update: Update, batch_size: int, updates: int, seed: int, group: dist.ProcessGroup) -> dict:
    """Bytes and seconds of each update, and how far the first mean gradient is from the true one."""
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
    """The same network on each worker, and a batch of its own, of real images."""
    torch.manual_seed(seed)
    net = BootcampResNet()
    split = data(IMAGES)
    images, labels = split.batch(shard(shuffle(len(split), seed, 0), rank, size)[:batch_size])
    return net, (normalise(images).contiguous(), labels)


def _error(found: Tensor, net: nn.Module, batch: Batch, group: dist.ProcessGroup) -> float:
    """Distance from the mean that PyTorch's own all-reduce computes, relative to that mean's length."""
    mean = gradient(net, batch)
    dist.all_reduce(mean, group=group)
    mean /= group.size()
    return ((found - mean).norm() / mean.norm()).item()
