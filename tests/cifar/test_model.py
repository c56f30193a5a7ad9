"""The two networks have the right numbers of parameters, and outputs of the right shape."""

import pytest
import torch
from torch import nn

from cifar.model import BootcampResNet, ResNet9, no_norm


def parameters(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


@pytest.mark.parametrize(
    ("net", "count"),
    [(BootcampResNet(no_norm), 482_442), (BootcampResNet(nn.BatchNorm2d), 486_410), (ResNet9(16), 412_944)],
)
def test_size_and_output(net: nn.Module, count: int):
    assert parameters(net) == count
    assert net(torch.zeros(4, 3, 32, 32)).shape == (4, 10)


def test_without_norm_there_is_no_running_statistic():
    assert list(BootcampResNet(no_norm).buffers()) == []


def test_width_multiplies_the_channels():
    assert ResNet9(width=32)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert 3.8 < parameters(ResNet9(width=32)) / parameters(ResNet9(width=16)) < 4
