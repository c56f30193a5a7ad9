"""What an experiment's function on a worker needs: its share of the machine, the data, and exchanges that sleep.

Horovod's own waiting spins, and with more workers than cores it takes the cores from those who still compute; these
wait as `cifar.workers.wait_for_gradients` does. Every exchange has a name: without, Horovod numbers them on each worker
for itself, and workers that were not in all of them wait for each other for ever.
"""

import time
from collections.abc import Callable, Sequence

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.instruments.simulated_workers import Data
from cifar.data import Split, load, normalise
from cifar.workers import POLL_SECONDS, autocast, use_device


def data(device: str, images: int = 50_000, test_images: int = 10_000) -> Data:
    """Training and test part, the first so many images of each, on this worker's device, with its share of threads.

    Rank 0 reads and checks them, the others get them from it: that is done once, not by each.
    """
    chosen = use_device(device, hvd.local_rank(), hvd.local_size())
    train, test = load(limit=images) if hvd.rank() == 0 else (None, None)
    return _from_rank_0("train", train, images, chosen), _from_rank_0("test", test, test_images, chosen)


def _from_rank_0(name: str, split: Split | None, count: int, device: torch.device) -> Split:
    images, labels = torch.empty((count, 3, 32, 32), dtype=torch.uint8), torch.empty(count, dtype=torch.int64)
    if split is not None:
        images, labels = split.images[:count], split.labels[:count]
    images = wait(hvd.broadcast_async(images, 0, f"{name}.images"))
    return Split(name, images.to(device), wait(hvd.broadcast_async(labels, 0, f"{name}.labels")).to(device))


def wait(handle: int):
    """The result of an exchange that was begun, once it is there."""
    while not hvd.poll(handle):
        time.sleep(POLL_SECONDS)
    return hvd.synchronize(handle)


def total(tensor: Tensor, name: str, **options) -> Tensor:
    """The sum over the workers; `options` as for hvd.allreduce."""
    return wait(hvd.allreduce_async(tensor, name=name, op=hvd.Sum, **options))


def mean(tensor: Tensor, name: str, **options) -> Tensor:
    """The mean over the workers; `options` as for hvd.allreduce."""
    return wait(hvd.allreduce_async(tensor, name=name, op=hvd.Average, **options))


def barrier() -> None:
    """Wait until all workers are here."""
    total(torch.zeros(1), "barrier")


def compute_on(update: Callable[[], Tensor], name: str, **options) -> None:
    """Make updates until all workers are here as well: whoever comes last must not have a core for itself."""
    handle = hvd.allreduce_async(torch.zeros(1), name=name, op=hvd.Sum, **options)
    while not hvd.poll(handle):
        update().item()  # a GPU has finished when it can tell the loss
    hvd.synchronize(handle)


def gather(tensor: Tensor, name: str) -> Tensor:
    """The workers' tensors below each other, by rank: `(size, ...)`."""
    return wait(hvd.allgather_async(tensor[None], name=name))


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """All values of the tensors in one vector."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def weights(net: nn.Module) -> Tensor:
    """All weights of a network in one vector."""
    return flat(list(net.parameters()))


@torch.no_grad()
def set_weights(net: nn.Module, vector: Tensor) -> None:
    """Give a network the weights that `weights` would return as `vector`."""
    torch.nn.utils.vector_to_parameters(vector, net.parameters())


def spread(net: nn.Module) -> float:
    """How far the workers' weights are apart: root mean square distance from their mean, relative to its length."""
    mine = weights(net)
    centre = mean(mine, "spread.centre")
    return (mean((mine - centre).square().sum(), "spread.square").sqrt() / centre.norm()).item()


def loss_of(net: nn.Module, images: Tensor, labels: Tensor, arithmetic=autocast) -> Tensor:
    """Mean loss of uint8 images `(B, 3, 32, 32)`, in bfloat16 where that is faster; `arithmetic` as `autocast`."""
    with arithmetic(images.device):
        return F.cross_entropy(net(normalise(images)).float(), labels)
