"""Compares the workers' gradients, and the weights that these gradients gave."""

import math
import statistics
from dataclasses import dataclass

from grader.run.hooks.grader_observer.log_format import PROJECTIONS
from grader.run.worker_log import Worker


def first_difference(workers: list[Worker]) -> int | None:
    """Return the number of the first update after which the workers' weights differ.

    It is 0 if they differ before the first update, and None if they never do.
    """
    if len({worker.first.start if worker.first else None for worker in workers}) > 1:
        return 0
    for step, updates in enumerate(zip(*(worker.updates for worker in workers), strict=False), start=1):
        if len({update.weights for update in updates}) > 1:
            return step
    return None


@dataclass(frozen=True)
class Averaging:
    """This says how one update's applied gradients compare with the workers' own gradients.

    `cosine_to_mean` is the cosine between a worker's applied gradient and the mean of all workers' own gradients. The
    smallest value of all workers counts. `cosine_to_own` uses the worker's own gradient in place of the mean, and
    `cosine_to_rank0` uses the own gradient of rank 0. `length_ratio` is the mean length of the applied gradients,
    divided by the length of the mean gradient. It is 4 for a sum over 4 workers, and less than 1 if gradients are
    clipped.
    """

    update: int
    cosine_to_mean: float
    cosine_to_own: float
    cosine_to_rank0: float
    length_ratio: float


def averaging(workers: list[Worker]) -> list[Averaging]:
    """Return one entry for each update that all workers made, if their gradients are finite and not zero."""
    entries = []
    for updates in zip(*(worker.updates for worker in workers), strict=False):
        own, applied = [update.local for update in updates], [update.applied for update in updates]
        if not all(vector and len(vector) == PROJECTIONS and usable(vector) for vector in own + applied):
            continue
        mean = [statistics.fmean(column) for column in zip(*own, strict=True)]
        if not usable(mean):
            continue
        entries.append(
            Averaging(
                updates[0].update,
                cosine_to_mean=min(cosine(vector, mean) for vector in applied),
                cosine_to_own=min(map(cosine, applied, own)),
                cosine_to_rank0=min(cosine(vector, own[0]) for vector in applied),
                length_ratio=statistics.fmean(math.hypot(*vector) for vector in applied) / math.hypot(*mean),
            )
        )
    return entries


def usable(vector: list[float]) -> bool:
    """Return whether angles can be computed. The vector must not be zero or have a NaN, nor may its square overflow."""
    return 1e-30 < math.hypot(*vector) < 1e30


def cosine(left: list[float], right: list[float]) -> float:
    """Return the cosine (-1 to 1) of the angle between two vectors that are not zero."""
    product = math.fsum(a * b for a, b in zip(left, right, strict=True))
    return product / (math.hypot(*left) * math.hypot(*right))
