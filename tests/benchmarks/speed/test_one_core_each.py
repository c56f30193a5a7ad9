"""Workers with a core each are judged by how much faster two are than one, and a model says what more would do."""

import pytest

from benchmarks.experiment.claim import Runs
from benchmarks.speed.comparisons import one_core_each
from tests.benchmarks.speed.test_speed import looked_at


def runs(two: float) -> Runs:
    """Return three rounds in which two workers are `two` times as fast as one, or a little more."""

    def speeds(factor: float) -> dict[str, dict[str, float]]:
        return {way: {"alone": 400 * factor, "group": 400 * factor} for way in one_core_each.WAYS}

    sizes = {"bytes": [4096, 1_600_000]}
    one = [{"images_per_s": speeds(1.0), "all_reduce": [], **sizes} for _ in range(3)]
    more = [{"images_per_s": speeds(two * wave), "all_reduce": [0.001, 0.004], **sizes} for wave in (1.0, 1.01, 1.02)]
    return {"1": one, "2": more}


@pytest.mark.parametrize(("two", "word"), [(1.9, "holds"), (1.5, "holds"), (1.1, "fails")])
def test_two_workers_are_judged_by_their_speed_over_one(two: float, word: str):
    made = runs(two)
    assert one_core_each.judge(made).word == word
    looked_at(one_core_each.CLAIM, one_core_each, made)


@pytest.mark.parametrize("way", one_core_each.WAYS)
def test_the_model_gives_more_workers_more_speed_but_never_more_than_their_number(way: str):
    made = runs(1.9)
    ups = [one_core_each.predicted(made, workers, way) for workers in (1, 2, 4, 8)]
    assert ups[0] == 1
    assert ups == sorted(ups)
    assert all(up <= workers for up, workers in zip(ups, (1, 2, 4, 8), strict=True))


def test_small_batches_gain_less():
    made = runs(1.9)
    assert one_core_each.predicted(made, 8, "strong") < one_core_each.predicted(made, 8, "weak")
