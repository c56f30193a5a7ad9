"""This exercise asks how many images per second pass a pipeline, with and without prefetching."""

import math

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def pipeline_rate(seconds: list[float], batch: int, overlapped: bool) -> float:
    """Return the images per second. There is at least one stage."""
    return batch / (max(seconds) if overlapped else math.fsum(seconds))


def _mean(seconds: list[float], batch: int, overlapped: bool) -> float:
    return pipeline_rate(seconds, batch, False) * len(seconds)


def _exchanged(seconds: list[float], batch: int, overlapped: bool) -> float:
    return pipeline_rate(seconds, batch, not overlapped)


def _never(seconds: list[float], batch: int, overlapped: bool) -> float:
    return pipeline_rate(seconds, batch, False)


def _always(seconds: list[float], batch: int, overlapped: bool) -> float:
    return pipeline_rate(seconds, batch, True)


def _fastest(seconds: list[float], batch: int, overlapped: bool) -> float:
    return batch / min(seconds) if overlapped else pipeline_rate(seconds, batch, False)


def _batches(seconds: list[float], batch: int, overlapped: bool) -> float:
    return pipeline_rate(seconds, 1, overlapped)


def _inverse(seconds: list[float], batch: int, overlapped: bool) -> float:
    return 1 / pipeline_rate(seconds, batch, overlapped)


MISTAKES = (
    Mistake(
        "mean", _mean,
        "A mean over the stages is neither: one after the other they add up, overlapped the slowest counts.",
    ),
    Mistake(
        "exchanged", _exchanged,
        "The two are exchanged: overlapped stages wait for the slowest alone, the others add up.",
    ),
    Mistake("never overlapped", _never, "Overlapped stages do not add up: they work at once, the slowest counts."),
    Mistake(
        "always overlapped", _always,
        "Without overlap no stage works while another does: their times add up.",
    ),
    Mistake("fastest", _fastest, "The fastest stage has to wait for the others: the slowest decides the rate."),
    Mistake("batches", _batches, "These are batches a second: each holds batch images."),
    Mistake("inverse", _inverse, "These are seconds an image: images a second are asked for."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, stages: int, overlapped: bool) -> TestCase:
    seconds = (draw.choice(np.arange(20, 500), stages, replace=False) / 1000).tolist()
    return TestCase(group, [{"seconds": seconds, "batch": 8 * int(draw.integers(2, 65)), "overlapped": overlapped}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        *(_case(draw, "one after the other", stages, False) for stages in (2, 3, 4)),
        *(_case(draw, "overlapped", stages, True) for stages in (2, 3, 4)),
        *(_case(draw, "one stage", 1, overlapped) for overlapped in (False, True)),
    ]


EXERCISE = Compared(
    id="pipeline_rate",
    title="The rate of an input pipeline",
    signature="pipeline_rate(seconds: list[float], batch: int, overlapped: bool) -> float",
    statement="""\
Each batch of `batch` images passes through the same stages in the same order: it is read, changed, copied, trained on,
or the like. Stage i takes seconds[i] for a batch. Return how many images a second pass through in the long run.

With overlapped = False a stage begins when the one before it is done, and the next batch begins when the last stage is
done. With overlapped = True each stage prefetches: it begins with the next batch as soon as it is done with one, so
that all stages work at once on different batches, and none of them slows another down.""",
    example=([0.5, 0.25], 75, False),
    groups={"one after the other": 1, "overlapped": 1, "one stage": 1},
    draw=_draw,
    reference=pipeline_rate,
    mistakes=MISTAKES,
)
