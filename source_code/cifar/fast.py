"""The parts of `cifar_fast.py`: a network for speed, whitening, lookahead, test-time augmentation and a schedule.

After Keller Jordan's airbench ("94% on CIFAR-10 in 3.29 Seconds on a Single GPU", 2024, arXiv:2404.00498), which builds
on David Page's "How to train your ResNet" (2018); narrower on processors.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PATCH = 2  # width and height of the first convolution
WHITENING_IMAGES = 1000
WHITENING_EPSILON = 5e-4  # keeps patches that hardly vary from being blown up (section 3.2)


class FastNet(nn.Sequential):
    """Seven convolutions: a whitening one that is not trained, and three blocks of two (section 3.1).

    Inputs `(B, 3, 32, 32)`, normalised, made smaller first where `pixels`, their width and height inside the network,
    is less than theirs; outputs logits `(B, 10)`. `widths` are the blocks' channels.
    """

    def __init__(self, widths: tuple[int, int, int]):
        whitened = 2 * 3 * PATCH**2
        channels = (whitened, *widths)
        super().__init__(
            nn.Conv2d(3, whitened, PATCH),
            nn.GELU(),
            *(_block(*pair) for pair in zip(channels, widths, strict=False)),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
            nn.Linear(widths[-1], 10, bias=False),
        )
        self.pixels = 32

    def forward(self, x: Tensor) -> Tensor:
        if self.pixels < x.shape[-1]:
            x = F.interpolate(x, (self.pixels, self.pixels), mode="bilinear", antialias=True)
        return super().forward(x) / 9  # small logits at first, as in airbench


def _block(inputs: int, outputs: int) -> nn.Sequential:
    first, second = (nn.Conv2d(count, outputs, 3, padding=1, bias=False) for count in (inputs, outputs))
    for convolution in (first, second):  # begin by passing the inputs on unchanged (section 3.3)
        nn.init.dirac_(convolution.weight[: convolution.in_channels])
    return nn.Sequential(first, nn.MaxPool2d(2), _norm(outputs), nn.GELU(), second, _norm(outputs), nn.GELU())


def _norm(channels: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels, momentum=0.4, eps=1e-12)
    norm.weight.requires_grad = False  # the next layer's scale does as well
    return norm


@torch.no_grad()
def whiten(net: FastNet, images: Tensor) -> None:
    """Set the first convolution so that its outputs are uncorrelated on patches of normalised `images`; freeze it.

    Its filters are the patches' principal directions, each divided by its standard deviation, and their negatives.
    """
    patches = F.unfold(images, PATCH).transpose(1, 2).reshape(-1, 3 * PATCH**2)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (vectors / (values + WHITENING_EPSILON).sqrt()).T.reshape(-1, 3, PATCH, PATCH)
    net[0].weight.copy_(torch.cat([filters, -filters]))
    net[0].weight.requires_grad = False
    net[0].bias.zero_()


class Lookahead:
    """A slowly moving average of a network's weights, which takes their place at each `update` (section 3.4).

    `net` must have its first weights when this is made.
    """

    def __init__(self, net: nn.Module):
        self.weights = [value for value in net.state_dict().values() if value.is_floating_point()]
        self.mean = [value.clone() for value in self.weights]

    @torch.no_grad()
    def update(self, decay: float) -> None:
        """Move the average by `1 - decay` of the way to the weights, and set the weights to it."""
        torch._foreach_lerp_(self.mean, self.weights, 1 - decay)
        torch._foreach_copy_(self.weights, self.mean)


def pixels(epoch: int, epochs: int) -> int:
    """Width and height of images in that epoch (from 0): 20 for three tenths of them, 24 for three more, then 32.

    What is learned first needs few details, and an epoch of smaller images takes about half the time ("progressive
    learning": Tan and Le, "EfficientNetV2", 2021, arXiv:2104.00298, section 4, without its growing regularisation).
    """
    tenths = 10 * (epoch + 1) / epochs
    return 20 if tenths <= 3 else 24 if tenths <= 6 else 32


class TestTimeAugmentation(nn.Module):
    """A network's weighted mean logits over six views of an image (section 3.5, "multi-crop evaluation").

    The views are the image, two crops that are shifted by one pixel, and each of these three flipped. The image counts
    as much as the two crops together. This is for evaluation, not for training. Inputs and outputs are the network's.
    """

    __test__ = False  # pytest takes classes whose names begin with "Test" for tests

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        padded = F.pad(x, (1,) * 4, mode="reflect")
        crops = (padded[..., at : at + height, at : at + width] for at in (0, 2))
        return self._both(x) / 2 + sum(map(self._both, crops)) / 4

    def _both(self, x: Tensor) -> Tensor:
        return (self.net(x) + self.net(x.flip(-1))) / 2


@dataclass(frozen=True)
class Plan:
    """What fits a kind of device."""

    widths: tuple[int, int, int]  # channels of the network's three blocks
    pixels: Callable[[int, int], int]  # width and height of an epoch's images, from the epoch and the number of epochs
    evaluated: Callable[[nn.Module], nn.Module]  # the module to evaluate in place of a network


# A few cores train to 90 % and are evaluated on the images as they are. A GPU trains airbench's network to 94 %, with
# airbench's test-time augmentation.
PLANS = {
    "cpu": Plan((32, 96, 192), pixels, lambda net: net),
    "cuda": Plan((64, 256, 256), lambda epoch, epochs: 32, TestTimeAugmentation),
}


def triangular_schedule(update: int, updates: int, start: float = 0.2, peak: float = 0.23, end: float = 0.07) -> float:
    """The rate's factor rises linearly from `start` to 1 at the share `peak` of the updates, then falls to `end`."""
    at = update / updates
    return start + (1 - start) * at / peak if at < peak else 1 - (1 - end) * (at - peak) / (1 - peak)
