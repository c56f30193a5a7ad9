"""What the workers' logs say of their gradients, and of the weights that these gradients gave."""

import math
import statistics
from dataclasses import dataclass

from grader.run.hooks.grader_observer.log_format import PROJECTIONS
from grader.run.worker_log import Worker


def first_difference(workers: list[Worker]) -> int | None:
    """The first update (from 1; 0: before the first) after which the workers' weights differ; None if they never do."""
    if len({worker.first.start if worker.first else None for worker in workers}) > 1:
        return 0
    for step, updates in enumerate(zip(*(worker.updates for worker in workers), strict=False), start=1):
        if len({update.weights for update in updates}) > 1:
            return step
    return None


@dataclass(frozen=True)
class Averaging:
    """How one update's applied gradients compare with the workers' own ones.

    `cosine_to_mean`: the least cosine, over the workers, between what was applied and the mean of all workers'
    gradients. `cosine_to_own`: the same with each worker's own gradient. `cosine_to_rank0`: the same with that of
    rank 0. `length_ratio`: length of what was applied divided by that of the mean. It is 4 for a sum over 4 workers,
    and less than 1 where gradients are clipped.
    """

    update: int
    cosine_to_mean: float
    cosine_to_own: float
    cosine_to_rank0: float
    length_ratio: float


def averaging(workers: list[Worker]) -> list[Averaging]:
    """One entry for each update that all workers made and whose gradients were seen on all, finite and not zero."""
    found = []
    for updates in zip(*(worker.updates for worker in workers), strict=False):
        own, applied = [update.local for update in updates], [update.applied for update in updates]
        if not all(vector and len(vector) == PROJECTIONS and _usable(vector) for vector in own + applied):
            continue
        mean = [statistics.fmean(column) for column in zip(*own, strict=True)]
        if not _usable(mean):
            continue
        found.append(
            Averaging(
                updates[0].update,
                cosine_to_mean=min(cosine(vector, mean) for vector in applied),
                cosine_to_own=min(map(cosine, applied, own)),
                cosine_to_rank0=min(cosine(vector, own[0]) for vector in applied),
                length_ratio=statistics.fmean(math.hypot(*vector) for vector in applied) / math.hypot(*mean),
            )
        )
    return found


def _usable(vector: list[float]) -> bool:
    """Whether angles can be computed with it: not zero, not a number that is none, nothing that overflows."""
    return 1e-30 < math.hypot(*vector) < 1e30


def cosine(one: list[float], other: list[float]) -> float:
    """Cosine of the angle between two vectors that are not zero, -1 to 1."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))
