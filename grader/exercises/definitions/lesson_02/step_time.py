"""This exercise asks to split the time of an update into a fixed part and a part that grows with the batch."""

import math

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def _line(xs: list[float], ys: list[float]) -> list[float]:
    """Return the intercept and the slope of the least-squares line."""
    xs, ys = np.array(xs), np.array(ys)
    slope = ((xs - xs.mean()) * (ys - ys.mean())).sum() / np.square(xs - xs.mean()).sum()
    return [ys.mean() - slope * xs.mean(), slope]


def step_time(batches: list[int], seconds: list[float]) -> list[float]:
    """Return the line's seconds at batch 0 and per image. There are at least two different batch sizes."""
    return _line(batches, seconds)


def _through_origin(batches: list[int], seconds: list[float]) -> list[float]:
    return [0.0, math.fsum(np.multiply(batches, seconds)) / math.fsum(np.square(batches))]


def _exchanged(batches: list[int], seconds: list[float]) -> list[float]:
    return step_time(batches, seconds)[::-1]


def _first_and_last(batches: list[int], seconds: list[float]) -> list[float]:
    slope = (seconds[-1] - seconds[0]) / (batches[-1] - batches[0])
    return [seconds[0] - slope * batches[0], slope]


def _other_way_round(batches: list[int], seconds: list[float]) -> list[float]:
    intercept, slope = _line(seconds, batches)
    return [-intercept / slope, 1 / slope]


def _mean_ratio(batches: list[int], seconds: list[float]) -> list[float]:
    return [0.0, float(np.divide(seconds, batches).mean())]


def _images_a_second(batches: list[int], seconds: list[float]) -> list[float]:
    fixed, each = step_time(batches, seconds)
    return [fixed, 1 / each]


MISTAKES = (
    Mistake(
        "through the origin", _through_origin,
        "Your line goes through the origin: an update takes time before its first image, which is t0.",
    ),
    Mistake("exchanged", _exchanged, "The two are exchanged: t0 comes first, then the seconds an image."),
    Mistake(
        "first and last", _first_and_last,
        "Your line joins the first and the last point: each measurement has its noise, so let all of them count.",
    ),
    Mistake(
        "other way round", _other_way_round,
        "You fitted the batches to the seconds: the noise is in the seconds, fit these to the batches.",
    ),
    Mistake(
        "mean ratio", _mean_ratio,
        "seconds / batch shares t0 out among the images: c is how much longer an update takes with one image more.",
    ),
    Mistake("images a second", _images_a_second, "Your c is in images a second: seconds an image are asked for."),
)  # fmt: skip


def _measured(draw: np.random.Generator, batches: list[int], noise: int) -> dict:
    """Draw times on a line. With `noise`, they are 5 to `noise` per cent longer and shorter by turns."""
    fixed, each = draw.integers(300, 900) / 1000, draw.integers(10, 50) / 10_000
    off = draw.integers(5, noise + 1, len(batches)) if noise else np.zeros(len(batches))
    seconds = (fixed + each * np.array(batches)) * (1 + (-1) ** np.arange(len(batches)) * off / 100)
    return {"batches": batches, "seconds": [round(value, 4) for value in seconds.tolist()]}


def _sizes(draw: np.random.Generator, count: int) -> list[int]:
    """Draw batch sizes in no order."""
    return (8 * draw.choice(np.arange(2, 33), count, replace=False)).tolist()


def _repeated(draw: np.random.Generator, count: int) -> list[int]:
    """Draw batch sizes of which two occur twice."""
    sizes = _sizes(draw, count - 2)
    return [*sizes, *sizes[1:3]]


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        *(TestCase("times on a line", [_measured(draw, _sizes(draw, count), 0)]) for count in (2, 4)),
        *(TestCase("times with noise", [_measured(draw, _sizes(draw, count), 9)]) for count in (3, 5)),
        *(TestCase("sizes that occur twice", [_measured(draw, _repeated(draw, count), 9)]) for count in (5, 7)),
    ]


EXERCISE = Compared(
    id="step_time",
    title="The fixed part of an update's time",
    signature="step_time(batches: list[int], seconds: list[float]) -> list[float]",
    statement="""\
An update of batches[i] images took seconds[i]. The batches are in no order, and a size may occur several times. There
are at least two different sizes. Of the lines seconds = t0 + c * batch find the one whose squared errors in the seconds
have the smallest sum. Return [t0, c]. Here t0 is the fixed part, in seconds, that an update takes whatever its batch.
The seconds that each image adds are c.""",
    example=([10, 20], [0.75, 1.25]),
    groups={"times on a line": 1, "times with noise": 2, "sizes that occur twice": 1},
    draw=_draw,
    reference=step_time,
    mistakes=MISTAKES,
)
