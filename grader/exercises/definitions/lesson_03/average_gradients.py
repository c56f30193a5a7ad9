"""This exercise asks for the average of the gradients of workers that have used different numbers of images."""

import math

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]:
    """Return the mean gradient of all images. At least one worker has an image."""
    return [value / sum(counts) for value in _weighted_sum(gradients, counts)]


def _sum(gradients: list[list[float]], counts: list[int]) -> list[float]:
    return [math.fsum(column) for column in zip(*gradients, strict=True)]


def _weighted_sum(gradients: list[list[float]], counts: list[int]) -> list[float]:
    weighted = [[count * value for value in row] for row, count in zip(gradients, counts, strict=True)]
    return _sum(weighted, counts)


def _unweighted(gradients: list[list[float]], counts: list[int]) -> list[float]:
    return [value / len(gradients) for value in _sum(gradients, counts)]


def _sum_by_images(gradients: list[list[float]], counts: list[int]) -> list[float]:
    return [value / sum(counts) for value in _sum(gradients, counts)]


def _weighted_by_workers(gradients: list[list[float]], counts: list[int]) -> list[float]:
    return [value / len(gradients) for value in _weighted_sum(gradients, counts)]


def _first(gradients: list[list[float]], counts: list[int]) -> list[float]:
    return gradients[0]


MISTAKES = (
    Mistake(
        "unweighted mean", _unweighted,
        "This is the unweighted mean: weigh each worker's gradient by its number of images.",
    ),
    Mistake("sum", _sum, "This is the workers' sum: each gradient is to be weighted by its count, and all divided."),
    Mistake("weighted sum", _weighted_sum, "The weights are right, the division is missing: divide by all images."),
    Mistake(
        "sum by images", _sum_by_images,
        "A worker's gradient is already the mean of its images: multiply it by its count before you divide by all.",
    ),
    Mistake(
        "weighted by workers", _weighted_by_workers,
        "The weights are right: now divide by the number of all images, not by the number of workers.",
    ),
    Mistake("worker 0", _first, "This is worker 0's gradient alone: the others have seen images too."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, counts: list[int]) -> TestCase:
    values = draw.integers(-900, 900, (len(counts), draw.integers(2, 5))) / 100
    return TestCase(group, [{"gradients": values.tolist(), "counts": counts}])


def _unequal(draw: np.random.Generator, workers: int) -> list[int]:
    return (8 * draw.choice(np.arange(1, 17), workers, replace=False)).tolist()


def _draw(draw: np.random.Generator) -> list[TestCase]:
    equal = [[8 * int(draw.integers(1, 17))] * workers for workers in (2, 3, 4)]
    unequal = [_unequal(draw, workers) for workers in (2, 3, 3, 4)]
    idle = [_unequal(draw, workers) for workers in (3, 4)]
    for counts in idle:
        counts[draw.integers(1, 3)] = 0
    edge = [_unequal(draw, 1), *idle]
    return [
        *(_case(draw, "equal shards", counts) for counts in equal),
        *(_case(draw, "unequal shards", counts) for counts in unequal),
        *(_case(draw, "one worker, or one without images", counts) for counts in edge),
    ]


EXERCISE = Compared(
    id="average_gradients",
    title="Average gradients over unequal shards",
    signature="average_gradients(gradients: list[list[float]], counts: list[int]) -> list[float]",
    statement="""\
Worker r has computed gradients[r], a list of numbers, equally long on all workers: the mean gradient of its own
counts[r] images. Return the mean gradient of all images of all workers together, as a list of numbers.

A worker with count 0 has no say. At least one worker has an image.

Goyal et al. 2017 (arXiv:1706.02677), section 3, "Gradient aggregation".""",
    example=([[1.0, 2.0], [4.0, 8.0]], [3, 1]),
    groups={"equal shards": 1, "unequal shards": 2, "one worker, or one without images": 1},
    draw=_draw,
    reference=average_gradients,
    mistakes=MISTAKES,
)
