"""The saved results of the claims and of the comparisons of speeds, as the lessons use them.

Notebooks import this module. So it must stay quick to import.
"""

import functools

from benchmarks import claims, speed
from benchmarks.experiment import results, runner
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.runner import Series


@functools.cache
def runs(id: str) -> Runs:
    """The saved runs of a claim, or of a comparison of speeds."""
    return series(id).runs


def series(id: str) -> Series:
    """The committed result of a claim, or of a comparison of speeds."""
    if id in speed.IDS:
        return runner.saved(speed.get(id), results.RESULTS / "speed" / id)
    return runner.saved(claims.get(id))
