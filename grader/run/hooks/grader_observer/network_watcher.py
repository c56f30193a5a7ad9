"""Finds the networks that the program calls, and notes the training loss."""

import weakref

import torch
from torch.nn.modules.loss import _Loss

from .gradient_probe import GradientProbe
from .weights_keeper import WeightsKeeper


class NetworkWatcher:
    """Follows the parameters of every network, and notes what loss modules compute."""

    def __init__(self, gradients: GradientProbe, keeper: WeightsKeeper):
        self.gradients, self.keeper = gradients, keeper
        self.known = weakref.WeakSet()  # modules called so far
        self.losses = []

    def before_forward(self, module, args) -> None:
        """PyTorch calls this before each call of any module.

        While torch.compile traces a network, this does nothing, so that the compiled code is that of the program alone.
        The compiled network itself is a module that is called, and it has the same parameters.
        """
        if torch.compiler.is_compiling() or module in self.known:
            return
        self.known.add(module)
        if isinstance(module, _Loss):
            module.register_forward_hook(self._note_loss)
        self.gradients.follow(module.parameters())
        self.keeper.note_module(module)

    def _note_loss(self, module, args, output) -> None:
        if output.requires_grad and output.numel() == 1:
            self.losses.append(output.detach())

    def take_loss(self) -> float | None:
        """The mean training loss since the last call; None if no loss module computed one."""
        losses, self.losses = self.losses, []
        return float(sum(losses)) / len(losses) if losses else None
