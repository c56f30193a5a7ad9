"""Lesson 02 goes on with the learner's run if its times make sense, and otherwise with the saved one."""

import pytest

from lessons import saved_runs
from lessons.cells.tasks.steady import steady


@pytest.mark.parametrize(
    ("seconds", "whose"),
    [([0.03, 0.04, 0.06], "your machine"), ([0.04, 0.03, 0.06], "your machine"), ([0.08, 0.04, 0.06], "the saved run")],
)
def test_a_run_is_replaced_only_if_a_larger_batch_was_much_faster(seconds, whose, capsys: pytest.CaptureFixture):
    saved, measured = saved_runs.runs("C16")["updates"][0], {"batches": [1, 2, 4], "seconds": seconds}
    found = steady(measured)
    assert found == (whose, measured if whose == "your machine" else saved)
    assert ("another program was busy" in capsys.readouterr().out) == (whose == "the saved run")
