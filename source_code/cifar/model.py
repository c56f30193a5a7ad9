"""The course has two networks: the lessons' small ResNet and the assignment's ResNet-9.

Their inputs are normalised images, float `(B, 3, 32, 32)`. Their outputs are logits `(B, 10)`.
"""

from collections import OrderedDict
from collections.abc import Callable

from torch import Tensor, nn

Norm = Callable[[int], nn.Module]  # It makes a layer from the number of channels. Examples: nn.BatchNorm2d, `no_norm`.


def no_norm(channels: int) -> nn.Module:
    """Stand in for a normalisation layer where a network is built without one."""
    return nn.Identity()


class Sum(nn.Module):
    """A residual connection adds the outputs of two branches, each `(B, C, H, W)`."""

    def __init__(self, main: nn.Module, shortcut: nn.Module):
        super().__init__()
        self.main, self.shortcut = main, shortcut

    def forward(self, x: Tensor) -> Tensor:
        return self.main(x) + self.shortcut(x)


def _bottleneck(inputs: int, inner: int, outputs: int, stride: int, norm: Norm) -> nn.Module:
    """Return a bottleneck block (He et al. 2015, arXiv:1512.03385, fig. 5).

    It adds the outputs of three convolutions (1x1, 3x3, 1x1) and of a 1x1 projection.
    """
    main = nn.Sequential(
        nn.Conv2d(inputs, inner, 1, stride), norm(inner), nn.ReLU(),
        nn.Conv2d(inner, inner, 3, padding=1), norm(inner), nn.ReLU(),
        nn.Conv2d(inner, outputs, 1), norm(outputs),
    )  # fmt: skip
    shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), norm(outputs))
    return nn.Sequential(Sum(main, shortcut), nn.ReLU())


class BootcampResNet(nn.Sequential):
    """The small ResNet of the bootcamp whose table notebook 07 re-examines. It has about 0.48 million parameters.

    Its architecture is kept (a 7x7 stem and two bottleneck blocks), so that results can be compared. The lessons differ
    in the normalisation layer, so `norm` is passed in.
    """

    def __init__(self, norm: Norm = no_norm):
        super().__init__(
            nn.Conv2d(3, 64, 7, stride=2, padding=3), norm(64), nn.ReLU(), nn.MaxPool2d(3, 2),
            _bottleneck(64, 64, 256, 1, norm),
            _bottleneck(256, 128, 512, 2, norm),
            nn.AvgPool2d(2), nn.Flatten(), nn.Linear(2048, 10),
        )  # fmt: skip


def _conv_bn(inputs: int, outputs: int, pool: bool = False) -> nn.Sequential:
    layers = [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []))


def _residual(channels: int) -> nn.Module:
    return Sum(nn.Sequential(_conv_bn(channels, channels), _conv_bn(channels, channels)), nn.Identity())


class Scale(nn.Module):
    """Multiply the input by a constant. This keeps the logits small, so that softmax does not saturate early."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class ResNet9(nn.Sequential):
    """The assignment's network follows Page's "How to train your ResNet" (2018).

    `width` is the number of channels after the first convolution. The last layers have 8 times as many channels. With a
    width of 16 the network has 0.41 million parameters.
    """

    def __init__(self, width: int = 16):
        w = width
        super().__init__(
            OrderedDict(
                prepare=_conv_bn(3, w),
                layer1=nn.Sequential(_conv_bn(w, 2 * w, pool=True), _residual(2 * w)),
                layer2=_conv_bn(2 * w, 4 * w, pool=True),
                layer3=nn.Sequential(_conv_bn(4 * w, 8 * w, pool=True), _residual(8 * w)),
                pool=nn.MaxPool2d(4),
                flatten=nn.Flatten(),
                classify=nn.Linear(8 * w, 10, bias=False),
                scale=Scale(0.125),
            )
        )
