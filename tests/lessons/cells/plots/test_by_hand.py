"""The figures of lesson 03 show what a learner's own functions do, also if they are wrong."""

import pytest

from grader.exercises.definitions.lesson_03.ring_step import ring_step
from lessons.cells.plots import by_hand


@pytest.fixture
def told(monkeypatch) -> list[tuple[str, str]]:
    found = []
    monkeypatch.setattr(by_hand, "show", lambda figure, alt, caption: found.append((alt, caption)))
    return found


@pytest.mark.parametrize("workers", [2, 4])
def test_a_right_step_completes_a_chunk_on_each_worker(told: list[tuple[str, str]], workers: int):
    by_hand.show_ring(ring_step, workers)
    expected = f"After {workers - 1} steps {workers} chunks are complete, one on each of {workers} workers."
    assert told[0][1] == expected


def test_a_step_that_does_nothing_completes_no_chunk(told: list[tuple[str, str]]):
    by_hand.show_ring(lambda chunks, step: chunks, 4)
    assert told[0][1] == "After 3 steps 0 chunks are complete."


def test_the_losses_are_described_from_first_to_last(told: list[tuple[str, str]]):
    by_hand.show_losses({"one": [2.31, 2.2, 2.1], "ring": [2.31, 2.2, 2.1]}, 3e-7)
    assert told == [
        (
            "Lines over 3 updates that cannot be told apart, the first one from 2.31 to 2.10.",
            "The weights are at most 3e-07 apart at the end, relative to their length. Each way adds its numbers in "
            "another order, and 3 updates let the rounding grow.",
        )
    ]


def test_losses_that_differ_are_not_called_equal(told: list[tuple[str, str]]):
    by_hand.show_losses({"one": [2.31, 2.2], "ring": [2.31, 2.6]}, 0.5)
    assert "cannot be told apart" not in told[0][0] and "rounding" not in told[0][1]
