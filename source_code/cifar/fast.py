"""The parts of `cifar_fast.py`: a network for speed, whitening, lookahead, test-time augmentation and a schedule.

They follow Keller Jordan's airbench ("94% on CIFAR-10 in 3.29 Seconds on a Single GPU", 2024, arXiv:2404.00498), which
builds on David Page's "How to train your ResNet" (2018). On a CPU the network has fewer channels than airbench's. The
sections that are named below are those of the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PATCH = 2  # pixels: the width and height of the first convolution
WHITENING_IMAGES = 1000  # The whitening filters are computed from patches of this many training images.
WHITENING_EPSILON = 5e-4  # Without it, directions in which patches hardly vary would be amplified (section 3.2).


class FastNet(nn.Sequential):
    """A network of seven convolutions: a whitening one that is not trained, and three blocks of two (section 3.1).

    Inputs are normalised images `(B, 3, 32, 32)`, and outputs are logits `(B, 10)`. The attribute `pixels` is the width
    and height of images inside the network. Larger inputs are first made that small. `widths` are the numbers of
    channels of the three blocks.
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
        return super().forward(x) / 9  # The logits are small at first, as in airbench.


def _block(inputs: int, outputs: int) -> nn.Sequential:
    first, second = (nn.Conv2d(count, outputs, 3, padding=1, bias=False) for count in (inputs, outputs))
    for convolution in (first, second):  # At first, each convolution passes its inputs on unchanged (section 3.3).
        nn.init.dirac_(convolution.weight[: convolution.in_channels])
    return nn.Sequential(first, nn.MaxPool2d(2), _norm(outputs), nn.GELU(), second, _norm(outputs), nn.GELU())


def _norm(channels: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels, momentum=0.4, eps=1e-12)
    norm.weight.requires_grad = False  # The weights of the next layer can scale its inputs instead.
    return norm


@torch.no_grad()
def whiten(net: FastNet, images: Tensor) -> None:
    """Set the weights of the first convolution so that it whitens patches of `images`, and freeze these weights.

    `images` are normalised, `(N, 3, H, W)`. The first half of the filters are the patches' principal directions, each
    divided by the standard deviation along it. Their outputs are uncorrelated. The other half are their negatives
    (section 3.2).
    """
    patches = F.unfold(images, PATCH).transpose(1, 2).reshape(-1, 3 * PATCH**2)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (vectors / (values + WHITENING_EPSILON).sqrt()).T.reshape(-1, 3, PATCH, PATCH)
    net[0].weight.copy_(torch.cat([filters, -filters]))
    net[0].weight.requires_grad = False
    net[0].bias.zero_()


class Lookahead:
    """A slowly moving average of a network's weights replaces the weights at each `update` (section 3.4).

    The average starts at the weights that `net` has when this object is made.
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
    """Return the width and height of images in an epoch, in pixels. Epochs are counted from 0.

    They are 20 in the first three tenths of the `epochs`, 24 in the next three tenths, and then 32. What is learned
    first needs few details, and an epoch of smaller images takes about half the time. This is the "progressive
    learning" of Tan and Le, "EfficientNetV2", 2021, arXiv:2104.00298, section 4, without its growing regularisation.
    """
    tenths = 10 * (epoch + 1) / epochs
    return 20 if tenths <= 3 else 24 if tenths <= 6 else 32


class TestTimeAugmentation(nn.Module):
    """The weighted mean of a network's logits over six views of an image (section 3.5, "multi-crop evaluation").

    The views are the image, two crops that are shifted by one pixel, and each of these three flipped. The image counts
    as much as the two crops together. This module is for evaluation, not for training. It has the same inputs and
    outputs as the network.
    """

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
    """A plan has the choices that differ between CPU and GPU.

    `widths` are the numbers of channels of the network's three blocks. `pixels` gives the width and height of images
    from the epoch and the number of epochs. `evaluated` gives the module to evaluate in place of a network.
    """

    widths: tuple[int, int, int]
    pixels: Callable[[int, int], int]
    evaluated: Callable[[nn.Module], nn.Module]


# A few cores train to 90 % and are evaluated on the images as they are. A GPU trains airbench's network to 94 %, with
# airbench's test-time augmentation.
PLANS = {
    "cpu": Plan((32, 96, 192), pixels, lambda net: net),
    "cuda": Plan((64, 256, 256), lambda epoch, epochs: 32, TestTimeAugmentation),
}


def triangular_schedule(update: int, updates: int, start: float = 0.2, peak: float = 0.23, end: float = 0.07) -> float:
    """Return the factor of the learning rate at an update.

    It rises linearly from `start` to 1, which it reaches after the share `peak` of the updates. Then it falls to `end`.
    """
    at = update / updates
    return start + (1 - start) * at / peak if at < peak else 1 - (1 - end) * (at - peak) / (1 - peak)
