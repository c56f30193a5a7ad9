"""LAMB is compared with another library where the two agree, and with its formula where they do not."""

import copy

import pytest
import pytorch_optimizer
import torch
from torch import nn
from torch.nn import functional as F

from cifar.lamb import Lamb, parameter_groups, trust_ratio


def train(net: nn.Module, optimizer: torch.optim.Optimizer, updates: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    for _ in range(updates):
        inputs = torch.randn(32, 12, generator=generator, dtype=torch.float64)
        labels = torch.randint(4, (32,), generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in net.parameters()]


def test_without_weight_decay_it_is_the_lamb_of_pytorch_optimizer():
    """Without weight decay, the trust ratio cancels the bias correction that only ours has.

    The norms of the weights stay below the library's clamp of 10. The library would divide the rate by one more bias
    correction after the trust ratio, and `adam_debias` switches this off.
    """
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 16, bias=False), nn.Tanh(), nn.Linear(16, 4, bias=False)).double()
    theirs = copy.deepcopy(net)
    ours = train(net, Lamb(net.parameters(), lr=0.01, eps=1e-12), updates=20)
    other = pytorch_optimizer.Lamb(theirs.parameters(), lr=0.01, eps=1e-12, adam_debias=True)
    for mine, their in zip(ours, train(theirs, other, updates=20), strict=True):
        assert torch.allclose(mine, their, rtol=1e-6, atol=1e-9)


def test_the_first_update_follows_the_formula():
    weight = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    weight.grad = torch.tensor([[0.5, -2.0]])
    Lamb([weight], lr=0.1, eps=1e-12, weight_decay=0.5).step()
    # At the first update, Adam's direction is the sign of the gradient.
    update = torch.tensor([[1.0, -1.0]]) + 0.5 * torch.tensor([[3.0, 4.0]])
    ratio = 5.0 / update.norm()
    assert torch.allclose(weight.detach(), torch.tensor([[3.0, 4.0]]) - 0.1 * ratio * update, atol=1e-6)


def test_an_adapted_step_is_the_rate_times_the_weights_norm_whatever_the_gradient():
    for scale in (1e-3, 1.0, 1e3):
        weight = nn.Parameter(torch.tensor([3.0, 4.0]))
        weight.grad = scale * torch.tensor([1.0, 2.0])
        Lamb([weight], lr=0.1, eps=1e-12).step()
        assert (weight.detach() - torch.tensor([3.0, 4.0])).norm().item() == pytest.approx(0.5, rel=1e-4)


def test_the_trust_ratio_is_1_where_a_norm_is_0():
    assert trust_ratio(torch.zeros(3), torch.ones(3)) == 1
    assert trust_ratio(torch.ones(3), torch.zeros(3)) == 1
    assert trust_ratio(torch.full((4,), 3.0), torch.full((4,), 1.5)) == pytest.approx(2)


def test_biases_and_norms_are_neither_decayed_nor_adapted():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))
    weights, others = parameter_groups(net, weight_decay=0.5)
    assert [tuple(weight.shape) for weight in weights["params"]] == [(4, 3, 3, 3), (2, 4)]
    assert len(others["params"]) == 4
    assert (weights["weight_decay"], weights["adapt"], others["weight_decay"], others["adapt"]) == (0.5, True, 0, False)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="out of range"):
        Lamb([nn.Parameter(torch.ones(1))], lr=-1)
