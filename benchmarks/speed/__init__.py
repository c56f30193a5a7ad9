"""How fast the course is beside what people would pick instead. Each comparison is a module, built as the claims are.

A variant is a way of doing the same work, and a seed is a round. One round of all variants comes before the next, so
whatever else the machine does slows all of them.
"""

import importlib
from types import ModuleType

from benchmarks.experiment.claim import Claim

SHORT = ("communication", "step", "scaling")  # `make benchmark`
LONG = {  # commands of their own
    "accuracy": "time-to-accuracy", "kept": "accuracy-kept", "start": "time-to-start", "gpu": "time-on-gpu",
}  # fmt: skip
IDS = (*SHORT, *LONG)
# The other comparisons lie in modules that have their ids as names.
MODULES = {
    "accuracy": "time_to_accuracy",
    "kept": "accuracy_ablation",
    "start": "setup_time",
}


def module(id: str) -> ModuleType:
    """The module of the comparison called `id`. KeyError if there is none."""
    if id not in IDS:
        raise KeyError(id)
    return importlib.import_module(f"{__name__}.comparisons.{MODULES.get(id, id)}")


def get(id: str) -> Claim:
    """The comparison called `id`. KeyError if there is none."""
    return module(id).CLAIM
