"""LARS: SGD with momentum, with a step length for each layer in proportion to the layer's weights."""

import torch
from torch import nn
from torch.optim import Optimizer


class Lars(Optimizer):
    """You et al. 2017 (arXiv:1708.03888), algorithm 1. Biases and BN parameters take plain SGD's step."""

    def __init__(self, params, lr: float = 1.0, momentum: float = 0.9, weight_decay: float = 5e-4, trust: float = 0.02):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                self._update(weight, group)

    def _update(self, weight: nn.Parameter, group: dict) -> None:
        direction, ratio = weight.grad, 1.0
        if weight.dim() > 1:
            direction = direction.add(weight, alpha=group["weight_decay"])
            ratio = group["trust"] * weight.norm() / direction.norm().clamp(min=1e-12)
        state = self.state[weight]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(weight)
        state["velocity"].mul_(group["momentum"]).add_(direction * ratio)
        weight.sub_(state["velocity"], alpha=group["lr"])
