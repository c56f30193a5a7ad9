"""Puts off an import that PyTorch makes and training does not need: that of its compiler, `torch._dynamo`.

Every optimizer imports it before its first step, only to tell a compiler that is not at work to keep out. That takes as
long as importing PyTorch itself: with four workers on two cores, 2 to 4 seconds of every launch.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import torch

COMPILER = "torch._dynamo"


class _Later(ModuleType):
    """Stands for the compiler while nothing is compiled; the real module takes its place when asked for more."""

    @staticmethod
    def graph_break(*args: object, **kwargs: object) -> None:
        """Outside of a compiled function the real one does nothing either."""

    @staticmethod
    def disable(function: Callable, *args: object, **kwargs: object) -> Callable:
        return function

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__path__":  # `inspect` asks every module for its file, in mid-import too
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER], torch._dynamo
        return getattr(importlib.import_module(COMPILER), name)


def put_off_compiler() -> None:
    """Have `torch._dynamo` imported when somebody compiles, as with `torch.compile`, and not before."""
    if COMPILER not in sys.modules:
        torch._dynamo = sys.modules[COMPILER] = _Later(COMPILER)
