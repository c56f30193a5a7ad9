"""The cost model finds its constants again, and the comparison of ways over links follows the numbers."""

import dataclasses

import numpy as np
import pytest

from benchmarks.cost_models import cost_model
from benchmarks.cost_models.cost_model import CostModel, Setting
from benchmarks.experiment.claim import Runs
from benchmarks.speed.comparisons import links
from tests.benchmarks.speed.test_speed import looked_at

MADE_UP = CostModel({2: (0.01, 0.002), 4: (0.02, 0.004)}, message=0.001, byte=2e-9, links=1.05)


def runs(slower: float = 1.0) -> Runs:
    """Return three launches as the made-up model has them. Ways other than one group take `slower` times as long."""
    found = {}
    for variant in links.CLAIM.variants:
        speeds = {way: links.predicted(MADE_UP, variant, way) / slower for way in links.PREDICTED_WAYS}
        speeds |= {way: links.predicted(MADE_UP, variant, way) for way in ("alone", "group")}
        speeds |= dict.fromkeys(("stock", "each"), speeds["group"])
        found[variant] = [
            {"images_per_s": {way: [speed * factor] for way, speed in speeds.items()}} for factor in (0.9, 1, 1.1)
        ]
    return found


def test_the_constants_of_the_model_are_found_again():
    found = links.model(runs())
    for name in ("message", "byte", "links"):
        assert getattr(found, name) == pytest.approx(getattr(MADE_UP, name), rel=0.02)
    assert found.computing == {size: pytest.approx(constants) for size, constants in MADE_UP.computing.items()}


def test_what_a_way_takes_for_its_own_work_is_found_again():
    own = {(way, workers): 0.01 * workers for way in links.COMPRESSED for workers in (2, 4)}
    made = dataclasses.replace(MADE_UP, own=own)
    found = {
        variant: [
            {"images_per_s": {way: [links.predicted(made, variant, way)] for way in ("alone", *links.PREDICTED_WAYS)}}
        ]
        for variant in links.CLAIM.variants
    }
    assert links.model(found).own == pytest.approx(own, rel=0.05)


def test_a_single_worker_exchanges_nothing_and_one_host_uses_no_link():
    slow = Setting(workers=4, hosts=1, rate=1e6, batch=16)
    fast = Setting(workers=4, hosts=1, rate=1e10, batch=16)
    assert MADE_UP.exchange(slow, 1e6) == MADE_UP.exchange(fast, 1e6) > 0
    assert MADE_UP.exchange(Setting(workers=1, hosts=1, rate=1e6, batch=16), 1e6) == 0


def test_on_a_slow_link_the_exchange_takes_the_time_of_its_bytes():
    setting = Setting(workers=2, hosts=2, rate=1e6, batch=16)
    least = 8 * 1e6 * 2 * (2 - 1) / 2 / setting.rate
    assert least < MADE_UP.exchange(setting, 1e6) < 1.1 * least


def test_an_overlapped_exchange_is_never_slower_and_hides_at_most_the_backward_pass():
    for variant in links.CLAIM.variants:
        setting, size = links.read(variant), links.gradient_bytes(links.NETWORK)
        group, parts = (MADE_UP.update(way, setting, size) for way in ("group", "parts"))
        hidden = (1 - cost_model.FORWARD) * MADE_UP.compute(setting.workers, setting.batch)
        assert group - hidden - 1e-9 <= parts <= group


@pytest.mark.parametrize(("slower", "word"), [(1.0, "holds"), (1.1, "holds"), (1.4, "fails")])
def test_the_model_is_judged_by_its_errors_where_it_was_not_fitted(slower: float, word: str):
    made = runs(slower)
    assert links.judge(made).word == word
    assert np.abs(links.errors(made, "local")).max() == pytest.approx(slower - 1, abs=0.02)
    looked_at(links.CLAIM, links, made)


def test_a_machine_that_is_slower_for_a_while_is_no_error_if_the_speed_alone_is_known():
    made = runs()
    slow = next(variant for variant in made if not links.is_fitted(variant))
    found = made[slow][0]["images_per_s"]
    made[slow][0] = {"images_per_s": {way: [speeds[0] / 2] for way, speeds in found.items()}}
    assert links.errors(made, "large")[0, 0] > 0.5
    assert abs(links.errors(made, "large", alone_known=True)[0, 0]) < 0.5 * links.errors(made, "large")[0, 0]


def test_every_way_trains_on_real_workers():
    found = links.run("1x2-10gbit-16", 0, {"batches": 8, "rounds": 1})["images_per_s"]
    assert set(found) == set(links.WAYS)
    assert all(speed > 0 for speeds in found.values() for speed in speeds)
