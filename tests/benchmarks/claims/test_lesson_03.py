"""The verdicts of lesson 03's claims on averaging, batches, losses and asynchrony follow the data."""

import numpy as np
import pytest

from benchmarks.claims.lesson_03 import c01_averaged_gradients as c01
from benchmarks.claims.lesson_03 import c02_uneven_batches as c02
from benchmarks.claims.lesson_03 import c05_smaller_local_batch as c05
from benchmarks.claims.lesson_03 import c08_printed_loss as c08
from benchmarks.claims.lesson_03 import c10_asynchronous_sgd as c10
from benchmarks.experiment.claim import Runs
from tests.support.claims import check, noise_vector

SEEDS = 5


# These tests are about claim C01.


@pytest.mark.parametrize(
    ("plain", "own", "shared", "word"),
    [
        (1e-15, 0.3, 1e-14, "depends"),  # Only normalisation over a worker's own images breaks the equality.
        (1e-15, 0.3, 0.3, "depends"),  # Nothing restores the equality.
        (1e-15, 1e-15, 1e-15, "holds"),
        (1e-3, 0.3, 1e-14, "fails"),
    ],
)
def test_c01_verdict(plain: float, own: float, shared: float, word: str):
    found = dict(zip(c01.NETWORKS, (plain, own, shared), strict=True))
    runs = {
        variant: [{"sizes": [1, 2, 4], "errors": [0.0, error / 2, error]}] * SEEDS for variant, error in found.items()
    }
    check(c01.CLAIM, runs, word)
    restored = "synchronised statistics restore it" in c01.judge(runs).sentence
    assert restored == (word == "depends" and shared < 0.1)


def test_c01_of_two_real_workers():
    found = c01.measure(seed=1, settings={"workers": 2, "batch_size": 4, "device": "cpu"})
    errors = {variant: values["errors"][-1] for variant, values in found.items()}
    assert max(errors["no_norm"], errors["synchronised_bn"]) < c01.EQUAL < 0.01 < errors["per_worker_bn"]


# These tests are about claim C02.


def shards(plain: list[float], weighted: float, stays: float) -> list[dict]:
    sizes = [
        {"images": 16 // part, "plain": error, "weighted": weighted, "averaged": stays * error}
        for part, error in zip(c02.PARTS, plain, strict=True)
    ]
    return [{"draws": 16, "sizes": sizes}] * SEEDS


@pytest.mark.parametrize(
    ("plain", "weighted", "word"),
    [
        ([1e-16, 0.5, 0.9], 1e-16, "holds"),
        ([1e-16, 1e-16, 1e-16], 1e-16, "fails"),  # Uneven shards do no harm.
        ([1e-16, 0.5, 0.9], 0.1, "depends"),  # Weighting does not repair the result.
        ([0.3, 0.5, 0.9], 1e-16, "depends"),  # Even shards give a wrong result as well.
    ],
)
def test_c02_verdict(plain: list[float], weighted: float, word: str):
    check(c02.CLAIM, {"shuffled": shards(plain, weighted, 0.25), "sorted": shards(plain, weighted, 0.95)}, word)


def test_c02_of_real_workers_whose_shards_differ():
    found = c02.measure(seed=1, settings={"batch_size": 8, "draws": 1, "device": "cpu"})
    for order in c02.ORDERS:
        even, *uneven = found[order]["sizes"]
        assert even["plain"] < c01.EQUAL
        assert all(size["plain"] > 0.01 and size["weighted"] < c01.EQUAL for size in uneven)


# These tests are about claim C05.


def teams(apart: float, kept: float, price: float, luck: float = 0.0, scatter: float = 0.02) -> Runs:
    """Return runs of one and of several workers.

    The losses of several workers differ from one worker's by `apart` if the batch is divided, and by `kept` if it is
    not. With a divided batch, images/s change by the share `price`. The rounds of a launch share its `luck`.
    """
    runs = {variant: [] for variant in c05.SIZES}
    for seed in range(SEEDS):
        loss = np.linspace(2.3, 1.9, 30) + 0.02 * noise_vector(seed, 30)
        for variant in c05.SIZES:
            one = variant == "1_worker"
            speeds = 300 * (1 + scatter * noise_vector(10 * seed + len(runs[variant]), 10))
            values = {"divided": speeds * (1 + price * (not one) + luck * noise_vector(seed, 1)), "kept": speeds[::-1]}
            values |= {f"{name}_alone": 1.1 * speeds for name in ("divided", "kept")}
            trajectories = {"divided": loss + apart * (not one), "kept": loss + (1e-6 if one else kept)}
            runs[variant].append({
                "losses": {name: of.tolist() for name, of in trajectories.items()},
                "images_per_s": {name: of.tolist() for name, of in values.items()},
            })  # fmt: skip
    return runs


@pytest.mark.parametrize(
    ("apart", "kept", "price", "word"),
    [
        (2e-6, 0.1, -0.3, "holds"),
        (2e-6, 0.1, 0.0, "depends"),  # A divided batch has no price.
        (2e-6, 0.1, 0.3, "depends"),  # A divided batch is faster.
        (1e-2, 0.1, -0.3, "fails"),  # The loss follows another trajectory.
        (2e-6, 1e-6, -0.3, "fails"),  # The trajectory is also the same if each worker keeps the whole batch size.
    ],
)
def test_c05_verdict(apart: float, kept: float, price: float, word: str):
    check(c05.CLAIM, teams(apart, kept, price), word)


def test_c05_counts_launches_not_rounds():
    assert c05.judge(teams(2e-6, 0.1, -0.1, luck=0.3)).word == "depends"
    assert c05.judge(teams(2e-6, 0.1, -0.1)).word == "holds"


# These tests are about claim C08.


def printed(size: int, common: float, own: float, updates: int = 300) -> list[dict]:
    """Return losses that fall on all workers.

    Noise of size `common` is the same on all workers, and noise of size `own` is each worker's own.
    """
    runs = []
    for seed in range(SEEDS):
        trend = np.linspace(2.3, 1.5, updates) + common * noise_vector(seed, updates)
        each = trend[:, None] + own * noise_vector(100 + seed, updates * size).reshape(updates, size)
        runs.append({"workers": each.tolist(), "mean": each.mean(1).tolist()})
    return runs


@pytest.mark.parametrize(
    ("size", "common", "own", "word"),
    [
        (8, 0.0, 0.1, "holds"),
        (4, 0.0, 0.1, "holds"),
        (8, 0.1, 0.1, "depends"),  # Most of the scatter is common to all workers.
        (8, 0.1, 0.01, "fails"),
    ],
)
def test_c08_verdict(size: int, common: float, own: float, word: str):
    check(c08.CLAIM, {"training": printed(size, common, own)}, word)


def test_scatter_is_the_deviation_of_the_noise_and_not_the_trend():
    losses = np.linspace(3, 1, 4000) + 0.1 * noise_vector(0, 4000)
    assert c08.scatter(losses) == pytest.approx(0.1, rel=0.05)


# These tests are about claim C10.


def trainings(rise: float, fall: float, scatter: float = 0.01) -> Runs:
    """Return runs whose losses rise by `rise` nats per step of staleness.

    The spreads fall by the share `fall` of their length per step of ρ.
    """
    runs = {"stale": [], "elastic": []}
    for seed in range(SEEDS):
        late = [
            {"setting": value, "losses": [2.0 + rise * place + scatter * float(jump)] * 8, "test_loss": 2.0}
            for place, (value, jump) in enumerate(zip(c10.STALENESS, noise_vector(seed, 5), strict=True))
        ]
        own = [
            {
                "setting": value, "losses": [2.0] * 8, "test_loss": 2.0,
                "spreads": [0.5 - fall * place + scatter * float(jump)] * 4,
            }
            for place, (value, jump) in enumerate(zip(c10.STIFFNESS, noise_vector(50 + seed, 5), strict=True))
        ]  # fmt: skip
        runs["stale"].append({"runs": late})
        runs["elastic"].append({"runs": own})
    return runs


@pytest.mark.parametrize(
    ("rise", "fall", "word"),
    [
        (0.1, 0.1, "holds"),
        (-0.1, -0.1, "fails"),
        (0.1, -0.1, "depends"),
        (-0.1, 0.1, "depends"),
        (0.0, 0.1, "no difference seen"),
        (0.0, 0.0, "no difference seen"),
    ],
)
def test_c10_verdict(rise: float, fall: float, word: str):
    check(c10.CLAIM, trainings(rise, fall), word)


def test_c10_of_one_seed_shows_no_difference():
    runs = {variant: values[:1] for variant, values in trainings(0.1, 0.1).items()}
    assert c10.judge(runs).word == "no difference seen"
