"""Compares the course's speed with that of the usual alternatives. Each comparison is a module, built like a claim.

A variant is a way of doing the same work, and a seed is a round. All variants are measured in one round before the next
round begins. Whatever else the machine does therefore slows all variants alike.
"""

import importlib
from types import ModuleType

from benchmarks.experiment.claim import Claim

SHORT = ("communication", "step", "scaling", "cores")  # `make benchmark` runs these
LONG = {  # each of these has its own command, which is named here
    "accuracy": "time-to-accuracy", "kept": "accuracy-kept", "start": "time-to-start", "gpu": "time-on-gpu",
    "links": "links", "savings": "savings",
}  # fmt: skip
IDS = (*SHORT, *LONG)
# Modules of the comparisons whose id is not the module's name.
MODULES = {
    "accuracy": "time_to_accuracy",
    "kept": "accuracy_ablation",
    "cores": "one_core_each",
    "start": "setup_time",
}


def module(id: str) -> ModuleType:
    """The module of the comparison with this id. Raises KeyError if there is none."""
    if id not in IDS:
        raise KeyError(id)
    return importlib.import_module(f"{__name__}.comparisons.{MODULES.get(id, id)}")


def get(id: str) -> Claim:
    """The comparison with this id. Raises KeyError if there is none."""
    return module(id).CLAIM
