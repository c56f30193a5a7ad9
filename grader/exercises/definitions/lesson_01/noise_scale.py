"""This exercise asks for an estimate of the gradient noise scale from gradients of two batch sizes."""

import math

import numpy as np

from grader.exercises import Compared, Mistake, TestCase

TWICE, LARGER = "a big batch of twice the images", "a big batch of many times the images"


def _estimates(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> tuple[float, float]:
    """Return unbiased estimates of |g|^2 and tr(Sigma)."""
    gradient = (big_batch * norm2_big - small_batch * norm2_small) / (big_batch - small_batch)
    return gradient, (norm2_small - norm2_big) / (1 / small_batch - 1 / big_batch)


def noise_scale(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    """Return tr(Sigma) / |g|^2 in images. The estimate of |g|^2 is positive."""
    gradient, noise = _estimates(small_batch, big_batch, norm2_small, norm2_big)
    return noise / gradient


def _inverse(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    gradient, noise = _estimates(small_batch, big_batch, norm2_small, norm2_big)
    return gradient / noise


def _noise_alone(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    return _estimates(small_batch, big_batch, norm2_small, norm2_big)[1]


def _biased(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    return _estimates(small_batch, big_batch, norm2_small, norm2_big)[1] / norm2_big


def _undivided(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    return (norm2_small - norm2_big) / _estimates(small_batch, big_batch, norm2_small, norm2_big)[0]


def _length(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    gradient, noise = _estimates(small_batch, big_batch, norm2_small, norm2_big)
    return noise / math.sqrt(gradient)


def _squared_again(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    gradient, noise = _estimates(small_batch, big_batch, norm2_small**2, norm2_big**2)
    return noise / gradient


def _mixed_up(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float:
    gradient, noise = _estimates(small_batch, big_batch, norm2_big, norm2_small)
    return noise / gradient


MISTAKES = (
    Mistake("inverse", _inverse, "This is the inverse: the noise scale is tr(Sigma) over |g|^2."),
    Mistake("noise alone", _noise_alone, "This is tr(Sigma) alone: divide it by the estimate of |g|^2."),
    Mistake(
        "biased", _biased,
        "norm2_big is larger than |g|^2 by tr(Sigma) / big_batch: estimate |g|^2 from both norms.",
    ),
    Mistake(
        "undivided", _undivided,
        "norm2_small - norm2_big is tr(Sigma) times (1/small_batch - 1/big_batch): divide by that.",
    ),
    Mistake("length", _length, "You divided by |g|: divide by |g|^2."),
    Mistake("squared again", _squared_again, "norm2_small and norm2_big are squared already."),
    Mistake("mixed up", _mixed_up, "The norms are mixed up: norm2_small belongs to small_batch."),
)  # fmt: skip


def _measured(draw: np.random.Generator, small: int, big: int) -> dict:
    """Draw noisy measurements for a random |g|^2 and a noise scale of 1 to 8 small batches."""
    gradient = draw.integers(50, 400) / 100
    noise = gradient * small * draw.integers(100, 800) / 100
    jitter = draw.integers(98, 103, 2) / 100
    norm2_small, norm2_big = (gradient + noise / np.array([small, big])) * jitter
    norms = {"norm2_small": round(float(norm2_small), 4), "norm2_big": round(float(norm2_big), 4)}
    return {"small_batch": small, "big_batch": big, **norms}


def _draw(draw: np.random.Generator) -> list[TestCase]:
    cases = []
    for group, factor in ((TWICE, 2), (TWICE, 2), (LARGER, 4), (LARGER, 8), (LARGER, 8)):
        small = 2 ** int(draw.integers(3, 9))
        cases.append(TestCase(group, [_measured(draw, small, factor * small)]))
    return cases


EXERCISE = Compared(
    id="noise_scale",
    title="Estimate the gradient noise scale",
    signature="noise_scale(small_batch: int, big_batch: int, norm2_small: float, norm2_big: float) -> float",
    statement="""\
`norm2_small` is the squared length of a gradient that was averaged over `small_batch` images. `norm2_big` is that of
one that was averaged over `big_batch` images. In the mean over many batches of B images, the squared length is
`|g|^2 + tr(Sigma) / B`. Here `|g|^2` is the squared length of the gradient of all images, and `tr(Sigma)` is the noise
of a single image.

You have two such equations. Solve them for `|g|^2` and for `tr(Sigma)`. Return the noise scale `tr(Sigma) / |g|^2`, in
images. In all test cases `big_batch` is larger than `small_batch`, and your estimate of `|g|^2` is positive.

McCandlish et al. 2018 (arXiv:1812.06162), appendix A.1.""",
    example=(64, 256, 3.0, 1.5),
    groups={TWICE: 2, LARGER: 2},
    draw=_draw,
    reference=noise_scale,
    mistakes=MISTAKES,
)
