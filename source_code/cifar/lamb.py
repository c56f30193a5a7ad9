"""The optimizer LAMB takes Adam's direction, with a step length for each layer in proportion to the layer's weights.

It is algorithm 2 of You et al. 2019 (arXiv:1904.00962), and it was made for large batches. If all layers have one
learning rate, then the layer with the largest updates in proportion to its weights limits the rate of all layers.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


def trust_ratio(weight: Tensor, update: Tensor) -> float:
    """Return ||weight|| / ||update||, or 1 if either norm is 0. It makes a layer's step a fixed share of its weights.

    `weight` and `update` have the same shape.
    """
    weight_norm, update_norm = weight.norm().item(), update.norm().item()
    return weight_norm / update_norm if weight_norm > 0 and update_norm > 0 else 1.0


class Lamb(Optimizer):
    """LAMB with bias correction, without a clamp on the weight norm and without gradient clipping.

    A parameter group with `adapt=False` takes Adam's step, unscaled (see `parameter_groups`). Raises ValueError for
    settings that are out of range.

    Libraries differ. timm first clips the global gradient norm at 1.0. pytorch_optimizer does not correct the bias in
    the direction. Instead it divides the learning rate by a correction after the trust ratio. It also adapts every
    parameter and clamps the weight norm at 10. The paper's listing does not say what bounds the trust ratio has.
    """

    def __init__(self, params, lr: float = 0.01, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 0.0, adapt: bool = True):  # fmt: skip
        if lr < 0 or eps <= 0 or weight_decay < 0 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"lr {lr}, betas {betas}, eps {eps}, weight_decay {weight_decay}: out of range")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adapt": adapt})

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:
        """Make one update. If there is a `closure`, it computes the loss that is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    update = self._adam_direction(weight, group).add_(weight, alpha=group["weight_decay"])
                    ratio = trust_ratio(weight, update) if group["adapt"] else 1.0
                    weight.add_(update, alpha=-group["lr"] * ratio)
        return loss

    def _adam_direction(self, weight: Tensor, group: dict) -> Tensor:
        """Return the mean gradient divided by its root mean square. Both are corrected for their start at zero."""
        state, (beta1, beta2) = self.state[weight], group["betas"]
        if not state:
            state.update(step=0, mean=torch.zeros_like(weight), square=torch.zeros_like(weight))
        state["step"] += 1
        state["mean"].lerp_(weight.grad, 1 - beta1)
        state["square"].mul_(beta2).addcmul_(weight.grad, weight.grad, value=1 - beta2)
        mean = state["mean"] / (1 - beta1 ** state["step"])
        square = state["square"] / (1 - beta2 ** state["step"])
        return mean / square.sqrt().add_(group["eps"])


def parameter_groups(net: nn.Module, weight_decay: float) -> list[dict]:
    """Return two parameter groups for `Lamb`.

    Convolution and linear weights are decayed and adapted. Biases and normalisation parameters are neither. An adapted
    parameter that starts at zero, like batch normalisation's shift, would hardly move, because its step is a share of
    its own norm.
    """
    weights = [parameter for parameter in net.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in net.parameters() if parameter.dim() <= 1]
    return [
        {"params": weights, "weight_decay": weight_decay, "adapt": True},
        {"params": others, "weight_decay": 0.0, "adapt": False},
    ]
