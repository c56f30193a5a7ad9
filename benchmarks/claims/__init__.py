"""The claims that the course is drawn from, one module each: `C28` lies in `c28.py`. Imported when asked for."""

import importlib

from benchmarks.claim import Claim

IDS = tuple(f"C{number:02}" for number in range(1, 33))


def get(id: str) -> Claim:
    """The claim called `id`. KeyError if there is none."""
    if id not in IDS:
        raise KeyError(id)
    return importlib.import_module(f"{__name__}.{id.lower()}").CLAIM
