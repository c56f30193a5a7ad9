"""Means with their spread, and differences with their interval: no claim inside the noise.

SciPy is imported where it is used: workers, which import a claim's module for its experiment alone, start sooner.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Difference:
    """Mean of `a` minus mean of `b`, and the 95 % interval of it (infinite while either has fewer than two values)."""

    mean: float
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def text(self, scale: float = 1, digits: int = 2, unit: str = "") -> str:
        """`+1.20 (0.80 to 1.60) points`: numbers times `scale`."""
        mean = f"{self.mean * scale:+.{digits}f}"
        if not math.isfinite(self.low):
            return f"{mean}{unit} (one run each, so no interval)"
        return f"{mean}{unit} (95 % interval {self.low * scale:.{digits}f} to {self.high * scale:.{digits}f})"


def difference(a: Sequence[float], b: Sequence[float]) -> Difference:
    """Welch's t interval for two variants with spreads of their own."""
    mean = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2:
        return Difference(mean, -math.inf, math.inf)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Difference(mean, mean, mean)
    from scipy import stats

    with warnings.catch_warnings():  # SciPy warns of a variant whose values are all equal; the other's spread is enough
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return Difference(mean, float(interval.low), float(interval.high))


def paired(a: Sequence[float], b: Sequence[float]) -> Difference:
    """The interval where value i of both variants comes from the same seed. ValueError if they are not equally many."""
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
    """`87.66 ± 0.17`: mean and sample deviation; the mean alone of a single value."""
    mean = f"{np.mean(values) * scale:.{digits}f}"
    return f"{mean} ± {deviation(values) * scale:.{digits}f}" if len(values) > 1 else mean


def deviation(values: ArrayLike) -> np.ndarray:
    """Sample deviation over the first axis, the runs: a number, or an array of the other axes; 0 of a single run."""
    return np.std(values, axis=0, ddof=min(1, len(values) - 1))
