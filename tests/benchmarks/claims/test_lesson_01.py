"""The verdicts of lesson 01's claims follow the results, and the functions give known answers."""

import math

import numpy as np
import pytest
import torch

from benchmarks.claims.lesson_01 import c03_gradient_error as c03
from benchmarks.claims.lesson_01 import c11_saddle_points as c11
from benchmarks.claims.lesson_01 import c12_noise_at_the_minimum as c12
from benchmarks.claims.lesson_01 import c28_critical_batch_size as c28
from benchmarks.experiment.dataset import data
from benchmarks.methods.gradients import gradient, step

SETTINGS = {"images": 256, "test_images": 100, "device": "cpu"}


def drawn(claim, runs):
    """Return whether a picture can be drawn of the runs, and has a text and a caption."""
    found = claim.picture(runs)
    found.figure.draw_without_rendering()
    return bool(found.alt and found.caption)


# These tests are about claim C03.


def of_power(power, runs=5):
    errors = [[8.0 * (size / 32) ** (power + 0.01 * run) for size in c03.SIZES] for run in range(runs)]
    return {"gradients": [{"sizes": c03.SIZES, "errors": line, "squared_norm": 2.0} for line in errors]}


@pytest.mark.parametrize(("power", "word"), [(-1, "fails"), (-0.5, "depends"), (0, "holds"), (0.5, "holds")])
@pytest.mark.parametrize("runs", [1, 5])
def test_averaging_costs_accuracy_unless_the_error_falls(power, word, runs):
    assert c03.judge(of_power(power, runs)).word == word
    assert drawn(c03.CLAIM, of_power(power, runs))


def test_a_batch_s_gradient_is_the_mean_of_its_images_gradients():
    train, _ = data(SETTINGS)
    torch.manual_seed(0)
    net = c28.network()
    indices = torch.arange(6)
    each = torch.stack([gradient(net, train, index.view(1)) for index in indices]).mean(0)
    torch.testing.assert_close(gradient(net, train, indices), each, rtol=0.05, atol=0.02)


def test_a_step_is_that_of_torch():
    train, _ = data(SETTINGS)
    torch.manual_seed(0)
    net = c28.network()
    before = torch.nn.utils.parameters_to_vector(net.parameters()).clone()
    vector = gradient(net, train, torch.arange(32))
    step(net, vector, 0.1)
    torch.testing.assert_close(torch.nn.utils.parameters_to_vector(net.parameters()), before - 0.1 * vector)


# These tests are about claim C11.


def saddle(one, scaled, runs=5):
    """Return runs whose updates change by these factors from the smallest to the largest batch."""

    def line(variant, factor, run):
        batches = c11.BATCHES[variant]
        updates = (200.0 + run) * np.geomspace(1, factor, len(batches))
        return {"batches": batches, "updates": updates.tolist()}

    factors = {"one-rate": one, "scaled-rate": scaled}
    return {variant: [line(variant, factor, run) for run in range(runs)] for variant, factor in factors.items()}


@pytest.mark.parametrize(
    ("one", "scaled", "word"), [(2.7, 0.04, "depends"), (2.7, 2, "holds"), (1, 0.04, "fails"), (0.5, 0.5, "fails")]
)
@pytest.mark.parametrize("runs", [1, 5])
def test_a_large_batch_is_stuck_if_it_leaves_later(one, scaled, word, runs):
    assert c11.judge(saddle(one, scaled, runs)).word == word
    assert drawn(c11.CLAIM, saddle(one, scaled, runs))


def test_a_large_batch_that_never_leaves_is_stuck():
    runs = saddle(2.7, 0.04)
    runs["one-rate"][0]["updates"][-1] = None
    assert c11.judge(runs).word == "holds"
    assert drawn(c11.CLAIM, runs)


def test_the_time_on_the_saddle_is_the_closed_form_s():
    """Close to the saddle the slope is -y.

    So the time there has a closed form. The cubic term and points that leave the saddle and come back change it little.
    """
    found = c11.escape(0.01, 64, 2000, np.random.default_rng(0))
    assert found == pytest.approx(float(c11.theory(0.01, np.array(64))), rel=0.1)


def test_without_noise_nobody_leaves_the_saddle(monkeypatch):
    monkeypatch.setattr(c11, "LIMIT", 50)
    assert c11.escape(0.01, 10**30, 10, np.random.default_rng(0)) == math.inf


# These tests are about claim C12.


def fits(power, rest=1e-5, runs=5, of_rate=None):
    """Return runs whose distance is proportional to a power of 1 / B and of the rate.

    Both have the same power, unless `of_rate` gives another one for the rate.
    """
    of_rate = power if of_rate is None else of_rate

    def line(run):
        pairs = [(rate, batch) for rate in c12.RATES for batch in c12.BATCHES]
        points = [{"rate": r, "batch": b, "distance": (0.7 + 0.01 * run) * r**of_rate / b**power} for r, b in pairs]
        return {"points": points, **shape}

    shape = {"minimum": [0.4, 0.4], "curvature": [[1, 0.7], [0.7, 1]], "covariance": [[0.4, 0.2], [0.2, 0.4]]}
    shape["path"] = [[-1.0, 0.6], [0, 0.8], [0.4, 0.4]]
    return {
        "gradient-descent": [{"distance": rest, "images": 100, **shape} for _ in range(runs)],
        "sgd": [line(run) for run in range(runs)],
    }


@pytest.mark.parametrize(
    ("power", "rest", "word"), [(0.5, 1e-5, "holds"), (0.5, 0.1, "fails"), (0, 1e-5, "fails"), (1, 1e-5, "depends")]
)
@pytest.mark.parametrize("runs", [1, 5])
def test_sgd_scatters_as_the_root_of_rate_over_batch(power, rest, word, runs):
    assert c12.judge(fits(power, rest, runs)).word == word
    assert drawn(c12.CLAIM, fits(power, rest, runs))


def test_a_distance_that_hardly_knows_the_rate_is_not_the_root_of_rate_over_batch():
    assert c12.judge(fits(0.5, of_rate=0.1)).word == "depends"


def test_the_expected_scatter_is_the_known_one():
    """If the noise has the shape of the curvature, the scatter is round: each weight's variance is rate / 2B."""
    curvature = [[1.0, 0.7], [0.7, 1.0]]
    assert c12.expected(curvature, curvature) == pytest.approx(1.0)


def test_gradient_descent_ends_at_the_minimum_and_sgd_near_it():
    settings = {"images": 500, "runs": 8, "updates": 200, "device": "cpu"}
    assert c12.run("gradient-descent", 0, settings)["distance"] < c12.REST
    found = c12.run("sgd", 0, settings)
    c = c12.expected(found["curvature"], found["covariance"])
    for point in found["points"]:
        assert point["distance"] == pytest.approx(c * math.sqrt(point["rate"] / point["batch"]), rel=0.5)


# These tests are about claim C28.


def bend(critical, noise, power=1.0, runs=5, edge=False):
    """Return runs with 100 (1 + critical / B)^power updates at the best of three rates, and with a noise scale."""

    def line(size, run):
        updates = (100 + run) * (1 + critical / size) ** power
        tried = [updates, None, None] if edge else [None, updates, updates * 1.2]
        return {"batch": size, "rates": [0.01, 0.02, 0.04], "updates": tried}

    def lengths(run):
        """Return the squared lengths of gradients over 64 and 256 images, if the true gradient has length 1."""
        small, big = ([1 + noise * (1 + 0.01 * run) / batch] * c28.WINDOWS for batch in (64, 256))
        return {"size": 4, "updates": 300, "small": small, "big": big}

    found = {"noise": [lengths(run) for run in range(runs)]}
    return found | {f"batch-{size}": [line(size, run) for run in range(runs)] for size in c28.SIZES}


@pytest.mark.parametrize(
    ("critical", "noise", "word"),
    [(200, 200, "holds"), (200, 500, "holds"), (200, 2000, "depends"), (200, 20, "depends"), (0.1, 200, "fails")],
)
@pytest.mark.parametrize("runs", [1, 5])
def test_the_noise_scale_tells_where_the_updates_bend(critical, noise, word, runs):
    assert c28.judge(bend(critical, noise, runs=runs)).word == word
    assert drawn(c28.CLAIM, bend(critical, noise, runs=runs))


def test_a_batch_size_without_a_bend_fails():
    assert c28.judge(bend(1e7, 200)).word == "fails", "more images for each update always help"
    assert c28.judge(bend(200, 200, power=2.0)).word == "fails", "another curve"


def test_a_best_rate_at_the_edge_is_told():
    assert "edge" in c28.judge(bend(200, 200, edge=True)).sentence
    assert "edge" not in c28.judge(bend(200, 200)).sentence


def test_a_target_that_is_never_reached_is_no_bend():
    runs = bend(200, 200)
    runs["batch-4"][0]["updates"] = [None, None, None]
    assert c28.judge(runs).word == "fails" and "batch-4" in c28.judge(runs).sentence
    assert drawn(c28.CLAIM, runs)


def test_the_hyperbola_is_found():
    sizes = np.array(c28.SIZES)
    assert c28.hyperbola(sizes, 50 * (1 + 300 / sizes)) == pytest.approx((50, 300), rel=1e-3)


def test_the_noise_scale_is_that_of_the_expected_lengths():
    """The expected squared length is E|g_B|^2 = |g|^2 + tr(Sigma) / B."""
    gradient, noise = 3.0, 600.0
    small, big = (gradient + noise / batch for batch in (c28.WORKER_BATCH, 4 * c28.WORKER_BATCH))
    assert c28.noise_scale(small, big, 4) == pytest.approx(noise / gradient)


def test_the_search_ends_between_worse_rates():
    tried = []

    def updates_with(rate, limit):
        tried.append(rate)
        updates = 100 + 50 * abs(math.log(rate / 1.0))
        return updates if updates <= limit else math.inf

    found = c28.search(updates_with, c28.FACTOR**-2, 1000)
    best = min(found, key=found.get)
    assert best == pytest.approx(1.0) and min(found) < best < max(found)
    assert len(tried) == len(set(tried)) == len(found)


def test_a_descent_counts_updates_until_the_loss_is_reached():
    train, test = data({"images": 2048, "test_images": 500, "device": "cpu"})

    def updates(rate, limit):
        return c28.descend(lambda net: gradient(net, train, torch.arange(1024)), rate, limit, 0, test, 0.05)

    found = updates(0.1, 50)
    assert 1 < found < 50
    assert updates(0.1, found / 2) == math.inf, "the limit"
    assert updates(1e6, 50) == math.inf, "diverged"


def test_workers_measure_the_noise_scale():
    settings = {"workers": 2, "images": 2048, "test_images": 200, "gain": 0.15, "updates": 60, "device": "cpu"}
    values = c28.run("noise", 0, settings)
    assert values["updates"] >= c28.WINDOWS and len(c28.scales(values)) == c28.WINDOWS
    assert 0 < c28.scale(values) < 5000
