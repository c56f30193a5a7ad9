"""Means with their spread, and differences with their 95 % interval, so that noise is not taken for a difference.

SciPy is imported inside the functions that use it. Workers import a claim's module only for its experiment, and start
sooner without SciPy.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Difference:
    """The mean of `a` minus the mean of `b`, and its 95 % interval from `low` to `high`.

    The interval is infinite if `a` or `b` has fewer than two values.
    """

    mean: float
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def text(self, scale: float = 1, digits: int = 2, unit: str = "") -> str:
        """The difference as text: `+1.20 points (95 % interval 0.80 to 1.60)`. Each number is multiplied by `scale`."""
        mean = f"{self.mean * scale:+.{digits}f}"
        if not math.isfinite(self.low):
            return f"{mean}{unit} (one run each, so no interval)"
        return f"{mean}{unit} (95 % interval {self.low * scale:.{digits}f} to {self.high * scale:.{digits}f})"


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The difference of two variants, whose spreads may differ, with the interval of Welch's t-test."""
    mean = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2:
        return Difference(mean, -math.inf, math.inf)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Difference(mean, mean, mean)
    from scipy import stats

    with warnings.catch_warnings():  # SciPy warns if all values of a variant are equal; the other's spread is enough
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return Difference(mean, float(interval.low), float(interval.high))


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The difference of two variants with the interval of the paired t-test.

    Value i of both variants must come from the same seed. Raises ValueError if the variants differ in their number of
    values.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values and {len(b)}: pairs need equally many")
    differences = np.subtract(a, b)
    mean = float(differences.mean())
    if len(differences) < 2:
        return Difference(mean, -math.inf, math.inf)
    from scipy import stats

    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    return Difference(mean, mean - float(half), mean + float(half))


def mean_std(values: Sequence[float], scale: float = 1, digits: int = 2) -> str:
    """Mean and sample deviation, as in `87.66 ± 0.17`. A single value has no deviation, so only the mean is given."""
    mean = f"{np.mean(values) * scale:.{digits}f}"
    return f"{mean} ± {deviation(values) * scale:.{digits}f}" if len(values) > 1 else mean


def deviation(values: ArrayLike) -> np.ndarray:
    """The sample deviation over the first axis, which counts the runs.

    The result has the shape of the other axes. For a single run it is 0.
    """
    return np.std(values, axis=0, ddof=min(1, len(values) - 1))
