"""Workers train in each way that saves bytes, and the comparison follows the numbers."""

import numpy as np
import pytest

from benchmarks.experiment.claim import Runs
from benchmarks.speed.comparisons import savings
from tests.benchmarks.speed.test_speed import looked_at


def runs(cost: float) -> Runs:
    """Return five runs of each way. All ways but the exact one end `cost` lower."""
    draw = np.random.default_rng(0)
    found = {}
    for way in savings.WAYS:
        ends = 0.5 - (way != savings.EXACT) * cost + 0.002 * draw.normal(size=5)
        found[way] = [{"test_accuracy": [end / 2, end]} for end in ends]
    return found


@pytest.mark.parametrize(("cost", "word"), [(0.0, "holds"), (0.05, "fails")])
def test_the_verdict_follows_the_difference_to_the_exact_way(cost: float, word: str):
    made = runs(cost)
    assert savings.judge(made).word == word
    looked_at(savings.CLAIM, savings, made)


def test_the_accuracy_after_some_time_lies_between_two_epochs():
    made = {way: [{"test_accuracy": [0.3, 0.5]}] for way in savings.WAYS}
    found = [savings.after(made, "topk", epoch_seconds=10, seconds=seconds)[0] for seconds in (0, 5, 10, 15, 20, 21)]
    assert found[:5] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5]) and np.isnan(found[5])


SLOW = pytest.mark.slow


@pytest.mark.parametrize("way", ["topk", pytest.param("powersgd", marks=SLOW), pytest.param("diloco", marks=SLOW)])
def test_real_workers_train_and_tell_their_accuracy_after_each_epoch(way: str):
    settings = {"images": 1024, "test_images": 200, "epochs": 2}
    found = savings.run(way, 0, settings)["test_accuracy"]
    assert len(found) == 2 and all(0 <= accuracy <= 1 for accuracy in found)
