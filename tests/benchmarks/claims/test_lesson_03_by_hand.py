"""The verdicts of lesson 03's claims follow the numbers, and functions written by hand agree with PyTorch."""

import copy

import pytest
import torch
from torch import nn

from benchmarks.claims.lesson_03 import c21_parameter_server as c21
from benchmarks.claims.lesson_03 import c22_sending_the_batch as c22
from benchmarks.claims.lesson_03 import c23_weight_decay as c23
from benchmarks.claims.lesson_03 import c25_sharding as c25
from benchmarks.instruments.gloo_processes import PeersError, on_peers
from benchmarks.methods import communication_patterns
from cifar.model import BootcampResNet

N = c21.BYTES


# These tests are about claim C21.


def _exchanged(way: str, seconds: float, central_mb: float = 100) -> dict:
    """Return a run with 2 and 4 workers that sent as many bytes as the theory says."""
    sizes = [2, 4]
    busiest = [central_mb * 1e6 if way == "central" else c21.expected(way, size) for size in sizes]
    each_way = [[half / 2] * size for half, size in zip(busiest, sizes, strict=True)]
    values = {"sizes": sizes, "sent": each_way, "received": each_way, "kernel_received": each_way, "error": 1e-8}
    return values | {"seconds": [seconds / 2, seconds]}


def _ways(central: list[float], others: list[float], central_mb: float = 100) -> dict:
    ways = {way: [_exchanged(way, seconds) for seconds in others] for way in c21.NAMES if way != "central"}
    return {"central": [_exchanged("central", seconds, central_mb) for seconds in central], **ways}


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (_ways([0.5, 0.52, 0.51], [0.3, 0.31, 0.29]), "holds"),
        (_ways([0.5], [0.3]), "holds"),
        (_ways([0.3, 0.31, 0.29], [0.5, 0.52, 0.51], central_mb=1), "fails"),
        # One way sends more bytes, but its times are within the noise.
        (_ways([0.3, 0.2, 0.4], [0.3, 0.31, 0.29]), "depends"),
        (_ways([0.31], [0.3], central_mb=1), "fails"),
        (_ways([0.5, 0.52, 0.51], [0.3, 0.31, 0.29], central_mb=1), "depends"),
    ],
)
def test_c21_follows_bytes_and_times(runs, word):
    assert c21.judge(runs).word == word
    _drawn(c21.picture(runs))


def test_c21_says_how_far_the_bytes_are_from_the_theory():
    runs = _ways([0.5], [0.3])
    runs["ring"][0]["sent"][1] = [2 * sent for sent in runs["ring"][0]["sent"][1]]
    assert c21.off(runs) == pytest.approx(1)
    assert c21.off(_ways([0.5], [0.3])) == 0


def test_c21_speaks_without_the_kernels_count():
    runs = _ways([0.5], [0.3])
    runs["ring"][0]["kernel_received"] = [[None, None], [None] * 4]
    assert "kernel" not in c21.judge(runs).sentence
    assert "kernel" in c21.judge(_ways([0.5], [0.3])).sentence


def test_c21_counts_the_bytes_of_the_network():
    assert sum(parameter.nbytes for parameter in BootcampResNet().parameters()) == N


# These tests are about claim C22.


def _fed(times: float, seconds: float = 0.01, pixels: int = 7) -> dict:
    """Return a run with 2 and 4 workers.

    With 4 workers each one received `times` as many bytes as it needed, and with 2 workers half as many.
    """
    need = 128 * c22.IMAGE
    received = [[max(1, times / 2) * need], [times * need] * 3]
    values = {"sizes": [2, 4], "need": need, "received": received, "kernel_received": received}
    return values | {"seconds": [seconds, seconds], "pixels": [[pixels], [pixels] * 3]}


@pytest.mark.parametrize(("whole", "word"), [(4, "holds"), (1, "fails"), (2, "depends")])
def test_c22_follows_the_bytes(whole, word):
    runs = {"whole batch": [_fed(whole)] * 2, "shard": [_fed(1)] * 2}
    assert c22.judge(runs).word == word
    _drawn(c22.picture(runs))


def test_c22_needs_the_same_images_both_ways():
    with pytest.raises(ValueError, match="different images"):
        c22.judge({"whole batch": [_fed(4, pixels=8)], "shard": [_fed(1)]})


# These tests are about claim C23.


def _summed(**decays: float) -> dict:
    """Return a run of 4 workers whose sums decay by these factors. The keys are n_in, n_out, kn_in and kn_out."""
    keys = dict(zip(("n_in", "n_out", "kn_in", "kn_out"), c23.SUMS, strict=True))
    terms = {keys[key]: [4.0 if key.startswith("n_") else 1.0, decay, 1e-15] for key, decay in decays.items()}
    norms = {name: [3.0, 2.0, 1.0] for name in c23.SUMS}
    return {"sums": [{"sizes": [2, 4], "terms": [terms, terms], "norms": norms, "one worker": [3.0, 2.0, 1.0]}]}


@pytest.mark.parametrize(
    ("decays", "word"),
    [
        ({"n_in": 4, "n_out": 4, "kn_in": 1, "kn_out": 1}, "holds"),
        ({"n_in": 1, "n_out": 1, "kn_in": 1, "kn_out": 1}, "fails"),
        ({"n_in": 4, "n_out": 1, "kn_in": 4, "kn_out": 1}, "depends"),
        ({"n_in": 4, "n_out": 1, "kn_in": 1, "kn_out": 1}, "depends"),
    ],
)
def test_c23_follows_the_terms(decays, word):
    runs = _summed(**decays)
    assert c23.judge(runs).word == word
    _drawn(c23.picture(runs))


def test_c23_finds_how_often_each_term_is_there():
    torch.manual_seed(0)
    data, decay = torch.randn(2, 10, 30, dtype=torch.float64)
    assert c23.terms(3 * data + 0.5 * decay, data, decay) == pytest.approx([3, 0.5, 0], abs=1e-12)


def test_c23_differentiates_the_summed_cross_entropy():
    torch.manual_seed(0)
    weights = torch.randn(10, 30, dtype=torch.float64, requires_grad=True)
    pixels, labels = torch.randn(6, 30, dtype=torch.float64), torch.randint(10, (6,))
    nn.functional.cross_entropy(pixels @ weights.T, labels, reduction="sum").backward()
    torch.testing.assert_close(c23.data_gradient(weights.detach(), (pixels, labels)), weights.grad)


# These tests are about claim C25.


def _used(share: float, accuracy: float | None = None) -> dict:
    """Return a run with 1 and 4 workers that used this share of 1,000 images."""
    unused = round(1000 * (1 - share))
    run = {"sizes": [1, 4], "used": [[unused, 1000 - unused], [unused, 1000 - unused]]}
    return run if accuracy is None else run | {"test_accuracy": accuracy}


def _orders(one: float, own: float, drawn: float, accuracies: list[tuple[float, float]] = ()) -> dict:
    shares = {"one shuffle": one, "own shuffles": own, "with replacement": drawn}
    both = accuracies or [(None, None)] * 2
    return {
        variant: [_used(share, first if variant == "one shuffle" else other) for first, other in both]
        for variant, share in shares.items()
    }


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (_orders(1, 0.684, 0.632), "holds"),
        (_orders(0.25, 0.684, 0.632), "fails"),
        (_orders(1, 1, 1), "no difference seen"),
    ],
)
def test_c25_follows_the_coverage(runs, word):
    assert c25.judge(runs).word == word
    _drawn(c25.picture(runs))


def test_c25_claims_no_accuracy_inside_the_noise():
    noise = _orders(1, 0.684, 0.632, [(0.60, 0.59), (0.61, 0.63), (0.62, 0.60)])
    assert "no difference seen" in c25.judge(noise).sentence
    clear = _orders(1, 0.684, 0.632, [(0.60, 0.55), (0.61, 0.565), (0.62, 0.57)])
    assert "no difference seen" not in c25.judge(clear).sentence
    assert "accuracy" not in c25.judge(_orders(1, 0.684, 0.632)).sentence


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("variant", list(c25.ORDERS))
def test_c25_orders_cover_what_the_theory_says(variant, size):
    used = torch.cat([c25.ORDERS[variant](8000, 3, 1, rank, size) for rank in range(size)])
    assert len(used) == 8000
    assert len(used.unique()) / 8000 == pytest.approx(c25.expected(variant, size), abs=c25.CLOSE)


# These tests start real processes.


def test_every_way_finds_the_mean_gradient_and_the_kernel_counts_its_bytes():
    workers = on_peers("benchmarks.methods.communication_patterns:measure", 3, batch_size=4, updates=2, seed=0)
    for way in c21.NAMES:
        for lines in workers[:2]:
            assert lines[way][0]["error"] < 1e-5
            assert lines[way][0]["kernel_received"] == pytest.approx(lines[way][0]["received"], rel=0.02)
        assert workers[2][way] == [None]  # Of three workers, the third one is in no group of 2.
        if way != "central":
            assert workers[0][way][0]["sent"] + workers[0][way][0]["received"] == c21.expected(way, 2)


def test_a_process_that_fails_ends_the_others_and_says_why():
    with pytest.raises(PeersError, match="slice indices must be integers"):
        on_peers("benchmarks.methods.communication_patterns:measure", 2, batch_size="no_such_size", updates=1, seed=0)


def test_activations_of_another_worker_give_its_gradient():
    """One graph can be differentiated at the activations of another forward pass.

    The server of `central` uses this.
    """
    torch.manual_seed(0)
    net = BootcampResNet()
    twin = copy.deepcopy(net)
    images, labels = torch.randn(2, 4, 3, 32, 32), torch.randint(10, (2, 4))
    tapes = [communication_patterns.Tape(net), communication_patterns.Tape(twin)]
    losses = []
    for tape, model, x, y in zip(tapes, (net, twin), images, labels, strict=True):
        with tape:
            losses.append(nn.functional.cross_entropy(model(x), y))
    tapes[0].saved = tapes[1].saved
    found = torch.autograd.grad(losses[0], list(net.parameters()))
    torch.testing.assert_close(found, torch.autograd.grad(losses[1], list(twin.parameters())))


def _drawn(picture):
    assert picture.alt
    assert picture.caption
    picture.figure.draw_without_rendering()
