"""The links on which a way pays are found where they are, and are told in words."""

import numpy as np
import pytest

from benchmarks.speed import crossings
from benchmarks.speed.comparisons import links
from benchmarks.speed.crossings import GRID, Band
from tests.benchmarks.speed.test_links import MADE_UP, runs


def test_a_way_pays_in_the_longest_band_of_gains():
    gains = np.ones(len(GRID))
    assert crossings.band(gains) is None
    gains[100:200] = gains[300:310] = crossings.WORTH
    assert crossings.band(gains) == Band(GRID[100], GRID[199])
    assert crossings.band(gains + 1) == Band(GRID[0], GRID[-1])


@pytest.mark.parametrize("way", ["parts", "fp16", "powersgd", "topk", "local", "accumulate"])
@pytest.mark.parametrize("layout", crossings.BETWEEN_HOSTS)
def test_what_is_measured_is_what_is_predicted_if_the_runs_follow_the_model(layout: str, way: str):
    made = runs()
    found = crossings.measured(made, layout, 64, way)
    expected = crossings.predicted(made, layout, 64, way)
    assert len(found) == len(expected) == 3 and all(expected)
    if way != "parts":  # The model's line of this way has a bend between two measured links.
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other, rel=0.05)


def test_fewer_bytes_pay_on_faster_links():
    made = runs()
    half, few = (crossings.predicted(made, "2x2", 64, way) for way in ("fp16", "topk"))
    assert all(one.fastest < other.fastest for one, other in zip(half, few, strict=True))
    slow = links.read("2x2-50mbit-64")
    assert links.speed(MADE_UP, slow, "topk") > links.speed(MADE_UP, slow, "fp16")


@pytest.mark.parametrize(
    ("bands", "words"),
    [
        ([Band(GRID[0], GRID[-1])] * 2, "everywhere"),
        ([None, None, Band(GRID[0], GRID[-1])], "nowhere"),
        ([Band(GRID[0], 310e6), Band(GRID[0], 290e6), Band(GRID[0], 342e6)], "below 310 (290 to 340)"),
        ([Band(GRID[0], 1.23e9)], "below 1,200"),
        ([Band(90e6, 310e6)], "90 to 310"),
    ],
)
def test_bands_are_told_in_words(bands: list[Band | None], words: str):
    assert crossings.told(bands) == words
