"""The figure of the valley has its best rates where the formula of lesson 05 has them."""

import numpy as np
import pytest

from lessons.cells.plots.valley import BATCHES, CRITICAL, best_rate, squared_distance


@pytest.mark.parametrize("batch", BATCHES)
def test_the_curve_is_lowest_at_the_best_rate(batch: int):
    rates = np.linspace(0, 2, 20_001)
    assert rates[squared_distance(rates, batch).argmin()] == pytest.approx(best_rate(batch), abs=1e-4)
    assert squared_distance(best_rate(batch), batch) == pytest.approx(1 - best_rate(batch))


def test_at_the_critical_batch_size_the_best_rate_is_half_of_that_without_noise():
    assert best_rate(CRITICAL) == 0.5
