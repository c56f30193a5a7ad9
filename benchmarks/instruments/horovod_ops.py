"""What an experiment's function on a worker needs: its share of the machine, the data, and exchanges that sleep.

Horovod's own waiting is a busy loop. With more workers than cores, it takes the cores from those who still compute. The
functions here sleep while they wait, as `cifar.workers.wait_for_gradients` does. Every exchange has a name. Without a
name, each worker numbers its own exchanges. Workers that did not take part in the same exchanges would then wait for
each other for ever.
"""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

import horovod.torch as hvd
import torch
import torch.distributed as dist
import torch.distributed.nn  # imported before the group exists: its functions' default values would hold the group
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.instruments.simulated_workers import Data
from cifar.data import Split, load, normalise
from cifar.workers import POLL_SECONDS, Arithmetic, autocast, use_device


def data(device: str, images: int = 50_000, test_images: int = 10_000) -> Data:
    """The first `images` of the training part and the first `test_images` of the test part, on this worker's device.

    It also sets this worker's share of the threads. Rank 0 reads and checks the images and sends them to the others, so
    this work is done only once.
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
    """Wait for an exchange that has begun, and return its result."""
    while not hvd.poll(handle):
        time.sleep(POLL_SECONDS)
    return hvd.synchronize(handle)


@contextlib.contextmanager
def torch_group() -> Iterator[None]:
    """Connect these workers through torch.distributed (Gloo) as well, on the network card that Horovod uses."""
    with tempfile.TemporaryDirectory() as mine:
        folder = hvd.broadcast_object(mine, name="torch_group")
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["HOROVOD_GLOO_IFACE"]
        dist.init_process_group("gloo", f"file://{folder}/store", rank=hvd.rank(), world_size=hvd.size())
        yield
        barrier()  # No worker leaves while others still exchange messages.
        dist.destroy_process_group()
        barrier()  # The folder stays until all have left.


def total(tensor: Tensor, name: str, **options) -> Tensor:
    """The sum over the workers. `options` are those of hvd.allreduce."""
    return wait(hvd.allreduce_async(tensor, name=name, op=hvd.Sum, **options))


def mean(tensor: Tensor, name: str, **options) -> Tensor:
    """The mean over the workers. `options` are those of hvd.allreduce."""
    return wait(hvd.allreduce_async(tensor, name=name, op=hvd.Average, **options))


def barrier() -> None:
    """Wait until all workers have called this function."""
    total(torch.zeros(1), "barrier")


def compute_on(update: Callable[[], Tensor], name: str, **options) -> None:
    """Make updates until all workers have called this function.

    If the others only waited, the last worker would have a core for itself and would be measured too fast.
    """
    handle = hvd.allreduce_async(torch.zeros(1), name=name, op=hvd.Sum, **options)
    while not hvd.poll(handle):
        update().item()  # reading the loss waits until a GPU has finished
    hvd.synchronize(handle)


def gather(tensor: Tensor, name: str) -> Tensor:
    """The workers' tensors, stacked in the order of the ranks: `(size, ...)`."""
    return wait(hvd.allgather_async(tensor[None], name=name))


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """All values of the tensors in one vector."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def weights(net: nn.Module) -> Tensor:
    """All weights of a network in one vector."""
    return flat(list(net.parameters()))


@torch.no_grad()
def set_weights(net: nn.Module, vector: Tensor) -> None:
    """Set a network's weights. `vector` has the order that `weights` returns."""
    torch.nn.utils.vector_to_parameters(vector, net.parameters())


def spread(net: nn.Module) -> float:
    """How far the workers' weights are apart.

    The result is their root mean square distance from their mean, divided by the length of the mean.
    """
    mine = weights(net)
    centre = mean(mine, "spread.centre")
    return (mean((mine - centre).square().sum(), "spread.square").sqrt() / centre.norm()).item()


def loss_of(net: nn.Module, images: Tensor, labels: Tensor, arithmetic: Arithmetic = autocast) -> Tensor:
    """The mean loss of uint8 images `(B, 3, 32, 32)`.

    `arithmetic` chooses the number format, as `autocast` does: bfloat16 where that is faster.
    """
    with arithmetic(images.device):
        return F.cross_entropy(net(normalise(images)).float(), labels)
