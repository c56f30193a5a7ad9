"""The verdicts of lesson 05's claims follow the data, and computed values agree with closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from benchmarks.claims.lesson_05 import c06_decay_by_epoch as c06
from benchmarks.claims.lesson_05 import c15_path_of_an_epoch as c15
from benchmarks.claims.lesson_05 import c20_learning_rate_scaling as c20
from benchmarks.claims.lesson_05 import c29_sharp_minima as c29
from benchmarks.experiment.claim import Runs
from benchmarks.instruments.simulated_workers import History
from benchmarks.methods.hessian import largest_eigenvalue, sharpness
from benchmarks.methods.recalibrate_batchnorm import settle
from cifar.data import Split, normalise
from tests.support.claims import check, noise

SEEDS = 5


# These tests are about claim C04.


def accuracies(size: int, at_epochs: float, at_updates: float) -> list[dict]:
    """Return five seeds of `size` workers. They rise to `at_epochs` in 4 epochs, and end at `at_updates`."""
    rising = [0.25 * at_epochs, 0.5 * at_epochs, 0.75 * at_epochs, at_epochs]
    curve = rising + list(np.linspace(at_epochs, at_updates, 4 * (size - 1) + 1)[1:])
    return [
        {
            "size": size, "epochs": 4, "updates": [8 * (n + 1) // size for n in range(4 * size)],
            "accuracy": [value + noise(10 * seed + size) for value in curve],
        }
        for seed in range(SEEDS)
    ]  # fmt: skip


def of_workers(at_epochs: float, at_updates: float, in_time: float, falling: float | None = None) -> Runs:
    """Return runs in which one worker ends at an accuracy of 0.60.

    Several workers end at `at_epochs` after equal epochs, and at `at_updates` after equal updates. With a falling rate,
    one worker ends at `in_time` in a half or a quarter of the time. `falling` replaces `at_epochs` there if it is
    given.
    """
    runs = {"workers-1": accuracies(1, 0.60, 0.60)}
    runs |= {f"workers-{size}": accuracies(size, at_epochs, at_updates) for size in (2, 4)}
    for place, variant in enumerate(c04.FALLING):
        end = (
            falling or at_epochs
            if variant.endswith("epochs")
            else at_updates
            if variant.endswith("updates")
            else in_time
        )
        end = 0.60 if variant == "falling-1" else end
        runs[variant] = [
            {"accuracy": [0.1, end + noise(100 * place + seed)], "updates": [5, 10]} for seed in range(SEEDS)
        ]
    return runs


@pytest.mark.parametrize(
    ("at_epochs", "at_updates", "in_time", "word"),
    [
        (0.50, 0.59, 0.40, "depends"),  # Most of the gap closes.
        (0.50, 0.51, 0.40, "holds"),  # The gap stays.
        (0.29, 0.30, 0.40, "fails"),  # The gap stays, but one worker is better than several in the same time.
        (0.65, 0.70, 0.40, "fails"),  # Several workers are better than one.
        (0.60, 0.60, 0.40, "no difference seen"),
    ],
)
def test_c04_verdict(at_epochs: float, at_updates: float, in_time: float, word: str):
    check(c04.CLAIM, of_workers(at_epochs, at_updates, in_time), word)


def test_c04_schedules_that_disagree():
    runs = of_workers(0.65, 0.65, 0.40, falling=0.50)
    check(c04.CLAIM, runs, "depends")
    assert c04.judge(runs).sentence.startswith("On the schedule.")


def test_c04_schedule_that_shows_nothing_does_not_disagree():
    runs = of_workers(0.60, 0.60, 0.40, falling=0.65)
    check(c04.CLAIM, runs, "fails")


def test_c04_rate_falls_to_zero_within_the_updates_of_the_variant(monkeypatch: pytest.MonkeyPatch):
    seen = {}
    monkeypatch.setattr(c04, "train", lambda recipe, data, seed: seen.update(recipe=recipe) or History(None, []))
    settings = {"images": 1024, "test_images": 10, "epochs": 4, "batch_size": 32, "rate": 0.01, "device": "cpu"}
    for variant, (size, updates) in {
        "falling-2-epochs": (2, 64),
        "falling-1-quarter": (1, 32),
        "falling-1-fourfold": (1, 512),
    }.items():
        c04.run(variant, 0, settings)
        recipe = seen["recipe"]
        assert (recipe.size, recipe.max_updates) == (size, updates)
        assert recipe.epochs * 1024 // (32 * size) >= updates
        factors = [recipe.factor(update, 16) for update in range(updates)]
        assert factors[0] == 2 and factors[-1] == pytest.approx(2 / updates)
    c04.run("workers-2", 0, settings)
    assert (seen["recipe"].max_updates, seen["recipe"].factor(100, 16)) == (128, 1)


def test_c04_time_to_an_accuracy():
    runs = {"workers-1": accuracies(1, 0.60, 0.60), "workers-2": accuracies(2, 0.45, 0.60)}
    for run in runs["workers-1"]:
        run["accuracy"] = [0.15, 0.30, 0.45, 0.60]
    for run in runs["workers-2"]:
        run["accuracy"][3] = 0.45
    # One worker is there after 3 epochs. Two workers use the images of 4 epochs in the time of 2.
    assert c04.speedup(runs, 2) == pytest.approx([1.5] * SEEDS)


# These tests are about claim C06.


def decaying(accuracy: float, every: int, spread: int) -> list[dict]:
    rate = [0.5 ** (epoch // every) for epoch in range(8)]
    return [{"rate": rate, "accuracy": [0.2, accuracy + noise(spread + seed)]} for seed in range(SEEDS)]


@pytest.mark.parametrize(
    ("base", "scaled", "word"),
    [
        (+0.05, +0.05, "holds"),
        (-0.05, -0.05, "fails"),
        (-0.05, +0.05, "depends"),
        (0, 0, "no difference seen"),
    ],
)
def test_c06_verdict(base: float, scaled: float, word: str):
    runs = {
        "one": decaying(0.6, 1, 0),
        "base-by-epoch": decaying(0.5 + base, 1, 10), "base-by-step": decaying(0.5, 4, 20),
        "scaled-by-epoch": decaying(0.5 + scaled, 1, 30), "scaled-by-step": decaying(0.5, 4, 40),
    }  # fmt: skip
    check(c06.CLAIM, runs, word)
    assert "4 times later" in c06.judge(runs).sentence


def test_c06_first_decay():
    assert c06.first_decay({"rate": [1, 1, 0.5]}) == 2
    assert c06.first_decay({"rate": [1, 1, 1]}) is None


# These tests are about claim C15.


@pytest.mark.parametrize(("power", "word"), [(-1, "holds"), (-1.5, "holds"), (-0.5, "depends"), (0, "fails")])
def test_c15_verdict(power: float, word: str):
    paths = [(np.array(c15.SIZES) ** (power + noise(seed))).tolist() for seed in range(SEEDS)]
    runs = {variant: [{"sizes": c15.SIZES, "paths": path} for path in paths] for variant in ("sgd", "adam")}
    check(c15.CLAIM, runs, word)
    assert ("faster" in c15.judge(runs).sentence) == (power < -1.25)


def test_c15_path_adds_the_lengths_of_the_updates():
    net, path = nn.Linear(2, 1, bias=False), c15.Path()
    for weights in ([0.0, 0.0], [3.0, 4.0], [3.0, 3.0]):
        net.weight.data[:] = torch.tensor(weights)
        path.look(net)
    assert path.lengths == pytest.approx([5, 1])


# These tests are about claim C20.


def valleys(best: list[float], scatter: float = 0.1) -> Runs:
    """Return losses that are parabolas in the logarithm of the rate, and are lowest at `best`."""
    rates = c20.CLAIM.settings["rates"]
    return {
        c20.variant_of(size): [
            {
                "batch": 32 * size, "rates": rates, "accuracies": [0.5] * len(rates),
                "losses": (1.5 + 0.1 * (np.log(rates) - np.log(rate) + noise(seed, scatter)) ** 2).tolist(),
            }
            for seed in range(10 * size, 10 * size + SEEDS)
        ]
        for size, rate in zip(c20.SIZES, best, strict=True)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("best", "word"),
    [
        ([0.02, 0.04, 0.08, 0.15, 0.3, 0.6], "holds"),  # The best rate is proportional to the batch everywhere.
        # The best rate is proportional to the batch up to the critical batch.
        ([0.05, 0.09, 0.16, 0.25, 0.26, 0.26], "depends"),
        ([0.1] * 6, "no difference seen"),
        ([0.6, 0.3, 0.2, 0.1, 0.05, 0.03], "fails"),
    ],
)
def test_c20_verdict(best: list[float], word: str):
    check(c20.CLAIM, valleys(best), word)


def test_c20_a_rate_that_levels_off_within_the_noise_does_not():
    levelled = [0.05, 0.09, 0.16, 0.25, 0.26, 0.26]
    assert c20.judge(valleys(levelled, scatter=0.1)).word == "depends"
    assert c20.judge(valleys(levelled, scatter=0.6)).word == "holds"


def test_c20_best_rate_lies_between_the_rates_of_the_grid():
    rates = [0.1, 0.2, 0.4, 0.8]
    losses = [1 + (np.log(rate) - np.log(0.25)) ** 2 for rate in rates]
    assert c20.best_rate(rates, losses) == pytest.approx(0.25)
    assert c20.best_rate(rates, [1, 2, 3, 4]) == 0.1  # The lowest loss is at the end of the grid.


def test_c20_fit_finds_the_critical_batch():
    batches = [32, 64, 128, 256, 512, 1024]
    rates = [0.7 / (1 + 200 / batch) for batch in batches]
    assert c20.top_and_critical(batches, rates) == pytest.approx((0.7, 200), rel=1e-3)


def test_c20_a_diverged_run_is_as_bad_as_guessing():
    assert c20._bounded(float("nan")) == c20._bounded(300.0) == pytest.approx(np.log(10))


# These tests are about claim C29.


def ends(sharp: float, base: int) -> list[dict]:
    return [
        {
            "sharpness": sharp * float(np.exp(noise(base + seed, 0.1))), "updates": 100, "test_accuracy": 0.5,
            "train_accuracy": 1.0, "train_loss": 0.01,
        }
        for seed in range(SEEDS)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("at_epochs", "at_updates", "word"),
    [
        (40, 40, "holds"),
        (40, 20, "depends"),
        (10, 40, "depends"),
        (20, 20, "no difference seen"),
        (10, 20, "fails"),
        (10, 10, "fails"),
    ],
)
def test_c29_verdict(at_epochs: float, at_updates: float, word: str):
    runs = {"small": ends(20, 0), "large-epochs": ends(at_epochs, 10), "large-updates": ends(at_updates, 20)}
    check(c29.CLAIM, runs, word)


def test_power_iteration_finds_the_largest_eigenvalue():
    matrix = torch.diag(torch.tensor([1.0, -2.0, 7.0, 3.0]))
    found = largest_eigenvalue(lambda vector: matrix @ vector, torch.ones(4), iterations=200, tolerance=1e-6)
    assert found == pytest.approx(7, rel=1e-4)


def test_sharpness_is_the_largest_eigenvalue_of_the_hessian():
    torch.manual_seed(0)
    net = nn.Sequential(nn.AvgPool2d(16), nn.Flatten(), nn.Linear(12, 10, bias=False))
    images = torch.randint(0, 256, (30, 3, 32, 32), dtype=torch.uint8)
    split = Split("train", images, torch.randint(10, (30,)))

    def loss(weight: torch.Tensor) -> torch.Tensor:
        inputs = net[:2](normalise(images))
        return nn.functional.cross_entropy(inputs @ weight.view(10, 12).T, split.labels)

    hessian = torch.autograd.functional.hessian(loss, net[2].weight.detach().reshape(-1))
    wanted = torch.linalg.eigvalsh(hessian)[-1].item()
    assert sharpness(net, split, iterations=300, tolerance=1e-5) == pytest.approx(wanted, rel=0.01)


def test_settled_statistics_are_those_of_the_images():
    net = nn.Sequential(nn.BatchNorm2d(3))
    images = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8)
    settle(net, Split("train", images, torch.zeros(8, dtype=torch.int64)))
    inputs = normalise(images)
    assert torch.allclose(net[0].running_mean, inputs.mean((0, 2, 3)), atol=1e-5)
    assert torch.allclose(net[0].running_var, inputs.var((0, 2, 3)), rtol=1e-3)
    assert not net.training
