"""Turns numbers that a submission wrote into curves of limited length."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from grader.run.worker_log import Update, Worker

MAX_UPDATES = 20_000  # updates; so many of a worker are looked at, and an honest worker makes less than 1,000
MAX_POINTS = 150  # points of a curve, for a picture that is about 300 units wide
MAX_MEANS = 70  # points of a curve that jumps from update to update; four such curves can then be told apart
TOO_LARGE = 1e9  # a number of this size is not drawn; honest numbers are far below


def limited_updates(worker: Worker) -> Sequence[Update]:
    """Return the updates of a worker that are looked at."""
    return worker.updates[:MAX_UPDATES]


def finite(values: Iterable[float | None]) -> np.ndarray:
    """Return the values as float64. A value that is absent, not finite or too large to draw becomes nan."""
    numbers = np.array([math.nan if value is None else value for value in values], dtype=float)
    numbers[~(np.abs(numbers) < TOO_LARGE)] = math.nan
    return numbers


def any_finite(curves: list[np.ndarray]) -> bool:
    return any(np.isfinite(curve).any() for curve in curves)


def missing_values(curves: list[np.ndarray]) -> str:
    """Return a sentence that counts the values that are not drawn. It is empty if all are drawn."""
    count = sum(int(np.isnan(curve).sum()) for curve in curves)
    return f" {count:,} values are absent, not finite or too large to draw." if count else ""


def mean(values: np.ndarray) -> float:
    """Return the mean of the finite values, or nan if there are none."""
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if len(kept) else math.nan


def in_words(value: float, digits: str = ".4g") -> str:
    return format(value, digits) if math.isfinite(value) else "none"


def means(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most MAX_MEANS points (x, y).

    Each point is the middle and the mean of a group of consecutive updates. x counts from 1.
    """
    groups = np.array_split(np.arange(len(curve)), max(1, min(len(curve), MAX_MEANS)))
    groups = [group for group in groups if len(group)]
    return np.array([group.mean() + 1 for group in groups]), np.array([mean(curve[group]) for group in groups])


def sampled(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most MAX_POINTS points (x, y) of the curve, with its first and its last. x counts from 1."""
    chosen = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), MAX_POINTS)).astype(int))
    return chosen + 1, curve[chosen]
