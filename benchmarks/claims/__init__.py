"""The claims that the course examines. Each has a module: `lesson_01/c28_critical_batch_size.py` holds C28."""

import importlib
from pathlib import Path

from benchmarks.experiment.claim import Claim

IDS = tuple(f"C{number:02}" for number in range(1, 33))


def get(id: str) -> Claim:
    """The claim with this id. Raises KeyError if there is none."""
    if id not in IDS:
        raise KeyError(id)
    (path,) = Path(__file__).parent.glob(f"lesson_*/{id.lower()}_*.py")
    return importlib.import_module(f"{__name__}.{path.parent.name}.{path.stem}").CLAIM
