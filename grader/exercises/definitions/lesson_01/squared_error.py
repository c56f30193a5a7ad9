"""This exercise asks how far the mean gradient of a random batch lies from the mean gradient of all examples."""

import math

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def _spread(gradients: list[list[float]]) -> float:
    """Return the trace of the covariance. It is the mean squared distance of the gradients from their mean."""
    return float(np.var(gradients, axis=0).sum())


def squared_error(gradients: list[list[float]], batch: int) -> float:
    """Return the expected squared distance between the mean of `batch` drawn gradients and the mean of all."""
    return _spread(gradients) / batch


def _sample(gradients: list[list[float]], batch: int) -> float:
    return squared_error(gradients, batch) * len(gradients) / (len(gradients) - 1)


def _undivided(gradients: list[list[float]], batch: int) -> float:
    return _spread(gradients)


def _divided_twice(gradients: list[list[float]], batch: int) -> float:
    return _spread(gradients) / batch**2


def _divided_by_all(gradients: list[list[float]], batch: int) -> float:
    return _spread(gradients) / len(gradients)


def _root(gradients: list[list[float]], batch: int) -> float:
    return math.sqrt(squared_error(gradients, batch))


def _first(gradients: list[list[float]], batch: int) -> float:
    return squared_error([gradient[:1] for gradient in gradients], batch)


def _mean_coordinate(gradients: list[list[float]], batch: int) -> float:
    return squared_error(gradients, batch) / len(gradients[0])


def _second_moment(gradients: list[list[float]], batch: int) -> float:
    return float(np.square(gradients).sum(axis=1).mean()) / batch


def _without_replacement(gradients: list[list[float]], batch: int) -> float:
    return _sample(gradients, batch) * (len(gradients) - batch) / len(gradients)


MISTAKES = (
    Mistake(
        "sample", _sample,
        "These examples are all there are, their mean is no estimate: divide by their number N, not by N - 1.",
    ),
    Mistake("undivided", _undivided, "This is the error of one example: the mean of a batch has 1 / batch of it."),
    Mistake(
        "divided twice", _divided_twice,
        "You divided by batch twice: the mean's squared error shrinks with 1 / batch, its square is taken already.",
    ),
    Mistake("divided by all", _divided_by_all, "Divide by the examples drawn, batch, not by all examples."),
    Mistake("root", _root, "This is the root: the squared distance is asked for."),
    Mistake("first number", _first, "This is the first number's alone: a squared distance sums over all numbers."),
    Mistake("mean number", _mean_coordinate, "This is a mean over the gradient's numbers: a squared distance sums."),
    Mistake(
        "second moment", _second_moment,
        "This is the gradients' distance from 0: take the mean gradient off each of them first.",
    ),
    Mistake(
        "without replacement", _without_replacement,
        "This holds where no example is drawn twice: here each draw is from all examples.",
    ),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, length: int, examples: int, batch: int) -> TestCase:
    values = draw.choice(np.arange(-900, 900), (examples, length), replace=False) / 100
    return TestCase(group, [{"gradients": values.tolist(), "batch": batch}])


def _alike(draw: np.random.Generator, group: str, examples: int) -> TestCase:
    gradient = (draw.integers(1, 900, 3) / 100).tolist()
    return TestCase(group, [{"gradients": [gradient] * examples, "batch": int(draw.integers(2, 9))}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    one, several, edge = "one number a gradient", "several numbers a gradient", "a batch of one, or equal gradients"
    return [
        *(_case(draw, one, 1, examples, batch) for examples, batch in ((4, 2), (5, 3))),
        *(_case(draw, several, length, examples, batch) for length, examples, batch in ((2, 5, 3), (3, 4, 2))),
        _case(draw, several, 3, 4, int(draw.integers(16, 65))),
        _case(draw, edge, 2, 5, 1),
        *(_alike(draw, edge, examples) for examples in (4, 1)),
    ]


EXERCISE = Compared(
    id="squared_error",
    title="The squared error of a batch's gradient",
    signature="squared_error(gradients: list[list[float]], batch: int) -> float",
    statement="""\
`gradients[i]` is the gradient of image i, a list of numbers. It is equally long for all images. We draw `batch` images
at random. An image may be drawn several times, so `batch` may be larger than their number. The mean of the drawn
gradients estimates the mean gradient of all images.

Return the expected squared distance between the two. That is the mean over all possible draws, so nothing has to be
drawn. The squared distance of two lists is the sum of the squared differences of their numbers.

McCandlish et al. 2018 (arXiv:1812.06162), section 2.2.""",
    example=([[1.0], [3.0]], 2),
    groups={"one number a gradient": 1, "several numbers a gradient": 2, "a batch of one, or equal gradients": 1},
    draw=_draw,
    reference=squared_error,
    mistakes=MISTAKES,
)
