"""The verdicts of lesson 02's claims follow the data, and computed values agree with closed forms."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.claims.lesson_02 import c07_loss_and_accuracy as c07
from benchmarks.claims.lesson_02 import c09_augmentation as c09
from benchmarks.claims.lesson_02 import c16_throughput as c16
from benchmarks.claims.lesson_02 import c17_training_memory as c17
from benchmarks.claims.lesson_02 import c18_mean_activation as c18
from benchmarks.claims.lesson_02 import c19_input_pipeline as c19
from benchmarks.experiment.claim import Runs
from benchmarks.instruments import memory
from benchmarks.instruments.step_timing import Stepper
from benchmarks.methods.augmentations import (
    Whiten,
    compose,
    random_brightness,
    random_contrast,
    random_crop,
    random_flip,
)
from cifar.data import normalise
from tests.support.claims import check, noise

SEEDS = 5


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(256, (16, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)


# These tests are about claim C07.


def measured(place: int, numbers: tuple[float, float, float, float]) -> list[dict]:
    names = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
    return [
        {
            name: value + noise(100 * place + 10 * seed + at)
            for at, (name, value) in enumerate(zip(names, numbers, strict=True))
        }
        for seed in range(SEEDS)
    ]


AGREE = [
    (1.2, 0.5, 1.5, 0.45),
    (0.9, 0.6, 1.4, 0.50),
    (0.7, 0.7, 1.3, 0.55),
    (0.5, 0.8, 1.2, 0.60),
    (0.3, 0.9, 1.1, 0.65),
]
# This recipe has the lowest training loss, and is nearly the worst on test images.
BY_HEART = [*AGREE[:4], (0.1, 0.95, 1.45, 0.47)]
SURE = [*AGREE[:4], (0.3, 0.9, 1.8, 0.65)]  # This recipe is the best on test images, and has the highest loss there.


@pytest.mark.parametrize(("rows", "word"), [(AGREE, "holds"), (BY_HEART, "depends"), (SURE, "fails")])
def test_c07_verdict(rows: list[tuple], word: str):
    check(
        c07.CLAIM,
        {variant: measured(place, row) for place, (variant, row) in enumerate(zip(c07.VARIANTS, rows, strict=True))},
        word,
    )


def test_c07_within_the_noise():
    runs = {variant: measured(place, (0.5, 0.8, 1.2, 0.6)) for place, variant in enumerate(c07.VARIANTS)}
    check(c07.CLAIM, runs, "no difference seen")


def test_c07_one_seed_shows_no_difference():
    runs = {
        variant: measured(place, row)[:1] for place, (variant, row) in enumerate(zip(c07.VARIANTS, SURE, strict=True))
    }
    check(c07.CLAIM, runs, "no difference seen")


# These tests are about claim C09.


def augmented(loss: float, accuracy: float, raised: tuple[str, ...]) -> Runs:
    """Return runs in which the variants in `raised` differ from "none" by these amounts. All variants have noise."""
    return {
        variant: [
            {
                "train_loss": 0.5 + loss * (variant in raised) + noise(20 * seed + place),
                "test_accuracy": 0.6 + accuracy * (variant in raised) + noise(1000 + 20 * seed + place),
            }
            for seed in range(SEEDS)
        ]
        for place, variant in enumerate(c09.CHANGES)
    }


EACH = tuple(variant for variant in c09.CHANGES if variant != "none")


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (augmented(0.2, 0.03, EACH), "holds"),
        (augmented(0.2, 0.03, ("shift", "mirror")), "depends"),
        (augmented(0.2, -0.03, EACH), "fails"),
        (augmented(0.0, 0.0, ()), "no difference seen"),
        (augmented(0.2, 0.0, EACH), "no difference seen"),  # The interval of accuracy does not rule out a rise.
    ],
)
def test_c09_verdict(runs: Runs, word: str):
    check(c09.CLAIM, runs, word)


def test_c09_pairs_the_seeds():
    """Seeds that differ much from each other, but equally in both variants, do not hide a difference."""
    runs = augmented(0.2, 0.03, EACH)
    for values in runs.values():
        for seed, run in enumerate(values):
            run["test_accuracy"] += 0.1 * seed
    assert c09.CLAIM.judge(runs).word == "holds"


def test_random_crops_are_windows_of_the_widened_images(images: torch.Tensor):
    torch.manual_seed(0)
    moved, wide = random_crop(images, pixels=2), F.pad(images.float(), (2, 2, 2, 2), mode="reflect")
    for image, source in zip(moved, wide, strict=True):
        windows = (source[:, y : y + 32, x : x + 32] for y in range(5) for x in range(5))
        assert any(torch.equal(image, window) for window in windows)


def test_half_of_the_images_are_flipped_at_random(images: torch.Tensor):
    torch.manual_seed(0)
    turned = [torch.equal(new, old.flip(-1)) for new, old in zip(random_flip(images), images, strict=True)]
    kept = [torch.equal(new, old) for new, old in zip(random_flip(images), images, strict=True)]
    assert 0 < sum(turned) < len(images) and 0 < sum(kept) < len(images)


def test_contrast_keeps_each_channels_mean(images: torch.Tensor):
    torch.testing.assert_close(random_contrast(images).mean((2, 3)), images.float().mean((2, 3)))


def test_whitening_undoes_brightness(images: torch.Tensor):
    """Whitening removes a constant that is added to all values.

    So brightness with whitening gives the same as whitening alone.
    """
    whiten = Whiten()
    torch.testing.assert_close(
        whiten(normalise(random_brightness(images))), whiten(normalise(images)), atol=1e-4, rtol=1e-4
    )


def test_whitened_images_have_mean_0_and_deviation_1(images: torch.Tensor):
    grey = torch.full((1, 3, 32, 32), 90, dtype=torch.uint8)
    change = compose(random_brightness, random_contrast)
    white = Whiten()(normalise(change(torch.cat([images, grey]))))
    torch.testing.assert_close(white.mean((1, 2, 3)), torch.zeros(17), atol=1e-3, rtol=0)
    torch.testing.assert_close(white[:16].std((1, 2, 3), correction=0), torch.ones(16), atol=1e-4, rtol=0)
    assert torch.isfinite(white).all()


# These tests are about claim C16.

BATCHES = [2**power for power in range(11)]


def updates(time) -> Runs:
    return {
        "updates": [
            {"batches": BATCHES, "seconds": [time(batch) * (1 + noise(100 * seed + batch)) for batch in BATCHES]}
            for seed in range(SEEDS)
        ]
    }


@pytest.mark.parametrize(
    ("time", "word"),
    [
        (lambda batch: 0.008 + 0.0005 * batch, "holds"),
        (lambda batch: 0.008 + 0.000001 * batch, "fails"),  # Here even the largest batch is far below the knee.
        # From 300 images on, another algorithm is used.
        (lambda batch: 0.0002 * batch * (20 if batch < 300 else 1), "depends"),
    ],
)
def test_c16_verdict(time, word: str):
    check(c16.CLAIM, updates(time), word)


def test_c16_line_finds_both_parts_and_the_rates_the_same_knee():
    times = [0.008 + 0.0005 * batch for batch in BATCHES]
    assert c16.line(BATCHES, times) == pytest.approx((0.008, 0.0005))
    # It is t0 / c or a little less, because 1024 is below the limit.
    assert c16.half_rate(BATCHES, times) == pytest.approx(16, rel=0.1)


# These tests are about claim C17.


def used(training: float, evaluation: float, kept: float) -> Runs:
    """Return runs whose peak grows by `each` MiB per image, above 100 MiB."""
    sizes, mebi = [64, 256, 512], 2**20

    def runs(each: float, more: dict) -> list[dict]:
        return [
            {"batches": sizes, "peaks": [int(mebi * (100 + each * size + noise(seed))) for size in sizes], **more}
            for seed in range(3)
        ]

    accounts = {"kept": kept * mebi, "weights": 2 * mebi, "state": 8 * mebi}
    return {"training": runs(training, accounts), "evaluation": runs(evaluation, {})}


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (used(0.6, 0.1, 0.5), "holds"),
        (used(2.2, 0.1, 0.5), "depends"),  # Each image takes as much memory as a gradient.
        (used(0.2, 0.1, 0.2), "depends"),  # A small batch shows no difference.
        (used(0.1, 0.1, 0.1), "fails"),
    ],
)
def test_c17_verdict(runs: Runs, word: str):
    check(c17.CLAIM, runs, word)


def test_c17_counts_what_autograd_keeps(images: torch.Tensor):
    """A linear layer keeps its input, and the loss its log-probabilities. Weights count the same at any batch size."""
    step = Stepper(torch.device("cpu"), nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)))
    labels = torch.zeros(16, dtype=torch.long)
    with torch.autocast("cpu", enabled=False):
        more = c17.kept(step, images, labels) - c17.kept(step, images[:8], labels[:8])
    assert more / 8 >= 3072 * 2  # Each image keeps at least its input, which is in bfloat16 on some machines.
    assert more / 8 < 3 * 3072 * 4


def test_peak_memory_is_the_new_processs_own(images: torch.Tensor):
    """The measured peak is that of the new process, even if this process has used more memory before."""
    ballast = torch.ones(2**26)  # This takes 256 MiB.
    del ballast
    found = memory.peak("training", images, torch.zeros(16, dtype=torch.long), "cpu")
    assert 8 * 2**20 < found < 512 * 2**20


# These tests are about claim C18.


def cosines(linear: float, others: float) -> Runs:
    return {
        variant: [
            {
                "sizes": [1, 16, 256], "biases": [1.0, 1.0, 1.0], "accuracy": 0.4, "accuracy_with_means": 0.1,
                "weights": [1.0, 1.0, (linear if variant.startswith("linear") else others) + noise(seed)],
            }
            for seed in range(SEEDS)
        ]
        for variant in c18.VARIANTS
    }  # fmt: skip


@pytest.mark.parametrize(
    ("linear", "others", "word"), [(1.0, 1.0, "holds"), (1.0, 0.4, "depends"), (0.4, 0.4, "fails")]
)
def test_c18_verdict(linear: float, others: float, word: str):
    check(c18.CLAIM, cosines(linear, others), word)


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    images = torch.randn(32, 3, 32, 32, generator=draw, dtype=torch.float64)
    return images, F.one_hot(torch.randint(10, (32,), generator=draw), 10).double()


@pytest.mark.parametrize("variant", c18.VARIANTS)
def test_one_image_is_its_own_mean(variant: str, batch: tuple):
    torch.manual_seed(0)
    build, loss = c18.VARIANTS[variant]
    net, (images, targets) = build().double(), batch
    true, mean = (gradient(net, loss, images[:1], targets[:1]) for gradient in (c18.true_gradient, c18.mean_gradient))
    for a, b in zip(true, mean, strict=True):
        torch.testing.assert_close(a, b)


def test_a_linear_network_with_squared_error_loses_the_covariance_alone(batch: tuple):
    """The gradient of a bias is the same with both losses.

    The gradient of a weight differs exactly by the covariance of error and input.
    """
    torch.manual_seed(0)
    net, (images, targets) = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).double(), batch
    true, mean = (gradient(net, c18.squared, images, targets) for gradient in (c18.true_gradient, c18.mean_gradient))
    torch.testing.assert_close(true[1], mean[1])
    error, inputs = net(images) - targets, images.flatten(1)
    covariance = (error - error.mean(0)).T @ (inputs - inputs.mean(0)) / len(images)
    torch.testing.assert_close(true[0] - mean[0], covariance)
    assert c18.cosine(true[:1], mean[:1]) < 0.9


# These tests are about claim C19.


def pipelines(distort: float, in_turn: float = 1.0, prefetched: float = 1.0, scatter: float = 1.0) -> Runs:
    """Return runs with batches of 100 images and updates of 0.01 s.

    In the loop, distorting takes `distort` times as long as an update. The rates are the predicted ones times these
    factors.
    """
    runs = {}
    for variant in c19.VARIANTS:
        work = distort * 0.01 if "loop" in variant else 0.0005
        stages = {"fetch": 0.0001, "distort": work, "normalise": 0.0001}
        stages["update"] = 0.001 if "small" in variant else 0.01
        run = {"batch": 100, "stages": stages}
        run["in_turn"] = in_turn * c19.predicted(run, False)
        run["prefetched"] = prefetched * c19.predicted(run, True)
        runs[variant] = [{**run, "in_turn": run["in_turn"] * (1 + scatter * noise(seed))} for seed in range(SEEDS)]
    return runs


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (pipelines(0.5), "holds"),
        (pipelines(0.5, prefetched=0.6), "depends"),  # The thread does not run beside the other one.
        (pipelines(0.05), "fails"),  # The pipeline makes no difference.
    ],
)
def test_c19_verdict(runs: Runs, word: str):
    check(c19.CLAIM, runs, word)


def test_c19_says_that_nobody_can_tell():
    assert "scatter too much" in check(c19.CLAIM, pipelines(0.5, scatter=150), "depends")


def test_prefetched_gives_all_in_order_and_works_ahead_in_a_thread():
    seen = []

    def prepare(item: int) -> int:
        seen.append(threading.current_thread())
        return item**2

    assert list(c19.prefetched(prepare, range(20))) == [item**2 for item in range(20)]
    assert len(set(seen)) == 1 and seen[0] is not threading.current_thread()


def test_prefetched_passes_an_error_on():
    with pytest.raises(ZeroDivisionError):
        list(c19.prefetched(lambda item: 1 / item, [1, 0]))


def test_the_loop_prepares_what_the_whole_tensor_does(images: torch.Tensor):
    """The loop and the whole tensor give the same images.

    The distortions are left out, because the two ways draw different random numbers.
    """
    loop, whole = c19.LOOP.normalise(images), c19.VECTORISED.normalise(images)
    torch.testing.assert_close(loop, whole)
