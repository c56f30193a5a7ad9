"""Delays the import of PyTorch's compiler, `torch._dynamo`, which training does not need.

Every optimizer imports it before its first step, only to tell the compiler not to compile the step. Nothing is compiled
here. The import takes as long as importing PyTorch itself. With four workers on two cores it takes 2 to 4 seconds of
every launch.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import torch

COMPILER = "torch._dynamo"


class _Later(ModuleType):
    """Replaces the compiler while nothing is compiled. The real module is imported when it is needed."""

    @staticmethod
    def graph_break(*args: object, **kwargs: object) -> None:
        """Do nothing. Outside of a compiled function the real one does nothing either."""

    @staticmethod
    def disable(function: Callable, *args: object, **kwargs: object) -> Callable:
        return function

    def __getattr__(self, name: str) -> object:
        # `inspect` asks every module for its file, also during an import. That must not import the compiler.
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER], torch._dynamo
        return getattr(importlib.import_module(COMPILER), name)


def put_off_compiler() -> None:
    """Delay the import of `torch._dynamo` until a program compiles something, for example with `torch.compile`."""
    if COMPILER not in sys.modules:
        torch._dynamo = sys.modules[COMPILER] = _Later(COMPILER)
