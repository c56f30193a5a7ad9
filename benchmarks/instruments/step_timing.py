"""One worker's update as a function of the batch alone, and a stopwatch for it."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cifar import workers
from cifar.model import BootcampResNet


class Stepper:
    """A network with Adam, which makes one update when it is called with a batch.

    The default network is that of the lessons, with batch normalisation. Images are normalised, of shape
    `(B, 3, 32, 32)`. Labels have the shape `(B,)`.
    """

    def __init__(self, device: torch.device, net: nn.Module | None = None):
        self.net = (net or BootcampResNet(norm=nn.BatchNorm2d)).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.001)

    def __call__(self, images: Tensor, labels: Tensor) -> None:
        """Make one update: a forward pass, a backward pass and a step of the optimizer."""
        self.net.train()
        with workers.autocast(images.device):
            loss = F.cross_entropy(self.net(images).float(), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, images: Tensor, labels: Tensor) -> Tensor:
        """The number of images that the network classifies correctly, a scalar tensor."""
        self.net.eval()
        with workers.autocast(images.device):
            return (self.net(images).argmax(1) == labels).sum()


def seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The median seconds of `repeats` calls of `work`, after one call that does not count."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        work()
        finish(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def finish(device: torch.device) -> None:
    """Wait until the device has finished its work. A GPU may still compute after a call has returned."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
