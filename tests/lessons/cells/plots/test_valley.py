"""The figure of the valley has its best rates where the formula of lesson 05 has them."""

import numpy as np
import pytest

from grader.notebooks.build import SOLUTIONS
from lessons.cells.plots.valley import BATCHES, NOISE_SCALE, best_rate, squared_distance


@pytest.mark.parametrize("batch", BATCHES)
def test_the_curve_is_lowest_at_the_best_rate(batch: int):
    rates = np.linspace(0, 2, 20_001)
    assert rates[squared_distance(rates, batch).argmin()] == pytest.approx(best_rate(batch), abs=1e-4)
    assert squared_distance(best_rate(batch), batch) == pytest.approx(1 - best_rate(batch))


def test_at_the_noise_scale_the_best_rate_is_half_of_that_without_noise():
    assert best_rate(NOISE_SCALE) == 0.5


@pytest.mark.parametrize(
    ("small", "large", "told"),
    [
        (1, 2, "from 1 to 2 images | {:.2f} times"), (64, 128, "from 64 to 128 | {:.2f} times"),
        (640, 1280, "from 640 to 1,280 | {:.2f} times"), (32, 512, "# {:.1f} times. Most of the way"),
        (1, 16, "(From 1 image to 16, it would grow {:.0f} times.)"),
    ],
)  # fmt: skip
def test_lesson_05_states_how_the_best_rate_grows(small: int, large: int, told: str):
    lesson = (SOLUTIONS / "05_why_it_converges_worse.py").read_text(encoding="utf-8")
    assert told.format(best_rate(large) / best_rate(small)) in lesson
