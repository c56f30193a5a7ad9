"""The cost model finds the constants that its times were made with, and verdicts follow the constants."""

import numpy as np
import pytest

from benchmarks.claims.lesson_10.c14_scaling_limit import (
    CASES,
    IMAGE_COST,
    SIZES,
    TEAMS,
    WORKERS,
    efficiency,
    judge,
    most_workers,
    picture,
)
from benchmarks.cost_models.ring_all_reduce import fit, ring
from benchmarks.speed.comparisons.step import operations
from cifar.model import BootcampResNet


def values(alpha, beta, updates, once=0.0):
    times = [[ring((once, alpha, beta), k, n) for n in SIZES] for k in TEAMS]
    return {"workers": TEAMS, "bytes": SIZES, "seconds": times, "updates": updates}


STEADY = [0.1] * 50


def test_the_constants_are_found_again():
    assert fit(values(2e-4, 3e-9, STEADY, 5e-3)) == pytest.approx((5e-3, 2e-4, 3e-9), rel=1e-6)


def test_a_resnet_50_costs_as_many_images_of_ours():
    assert pytest.approx(4.1e9 / (operations(BootcampResNet()) / 2), rel=0.01) == IMAGE_COST


def test_a_faster_processor_is_held_up_as_often_a_second_and_as_long():
    """Of 100 updates, one is late by the time of 4 updates.

    At 100 times the speed, one of 10,000 updates is late by the time of 400 updates.
    """
    late = values(1e-15, 1e-18, [0.1] * 99 + [0.5])
    slow, fast = (efficiency(late, f"small network, {case}") for case in ("as here", "100x faster processor"))
    assert fast[0] == pytest.approx(1, abs=0.15)
    assert fast[-1] == pytest.approx(0.00104 / (0.001 + 0.4 * (1 - 0.9999**4096)), rel=0.15) and slow[-1] > fast[-1]


def test_without_exchange_and_stragglers_all_workers_compute():
    shares = efficiency(values(1e-15, 1e-18, STEADY), "small network, as here")
    assert shares == pytest.approx([1.0] * len(WORKERS), abs=1e-3)


def test_stragglers_cost_more_among_more_workers():
    late = [0.1] * 99 + [0.5]
    shares = efficiency(values(1e-15, 1e-18, late), "small network, as here")
    assert shares[0] == pytest.approx(1, abs=0.1) and shares[-1] == pytest.approx(np.mean(late) / 0.5, abs=0.02)


def test_the_largest_number_of_workers_that_compute_half_of_their_time():
    assert most_workers([1.0] * 4 + [0.4] * 9) == 8 and most_workers([0.1] * 13) == 0


@pytest.mark.parametrize(
    ("alpha", "beta", "word"), [(1e-9, 1e-15, "fails"), (1.0, 1e-6, "holds"), (3e-4, 1e-9, "depends")]
)
def test_the_verdict_follows_the_constants(alpha, beta, word):
    runs = {"machine": [values(alpha, beta, STEADY)] * 3}
    verdict = judge(runs)
    assert verdict.word == word and all(case in verdict.sentence for case in CASES)
    drawn = picture(runs)
    assert drawn.alt and "ms a message" in drawn.caption
