"""Made-up runs support and contradict the claims C24, C30 and C31, and computed values are right."""

import math

import pytest
import torch

from benchmarks.claims.lesson_06 import c24_momentum_correction as c24
from benchmarks.claims.lesson_06 import c30_ghost_batch_norm as c30
from benchmarks.claims.lesson_06 import c31_warmup as c31
from benchmarks.instruments.simulated_workers import Recipe, Team
from cifar.data import Split

SPREAD = (-0.004, -0.002, 0.0, 0.002, 0.004)
BEFORE, AFTER = 10, 60


def stepped(factor, kept, scatter=1.0, loss=1.0):
    """Return a run whose lengths follow the rate, with a share `kept` of the old velocity.

    The old velocity fades as fast as a momentum of 0.9 allows.
    """
    after = [factor * scatter * (1 + (kept / factor - 1) * 0.9 ** (1 + k) * (kept > 0)) for k in range(AFTER)]
    return {
        "factor": factor, "before": BEFORE, "lengths": [1.0] * BEFORE + after, "losses": [loss] * (BEFORE + AFTER),
        "test_accuracy": 0.4,
    }  # fmt: skip


def changes(up=1.0, down=1.0, seeds=5, losses=(1.0, 1.0)):
    """Return runs around a change of the rate.

    `up` and `down` say how much of the old velocity the uncorrected runs keep. With 0 they are like corrected runs.
    """
    found = {}
    for direction, kept in (("up", up), ("down", down)):
        factor = c24.FACTORS[direction]
        found[f"{direction}-corrected"] = [stepped(factor, 0, 1 + s, losses[0] + s) for s in SPREAD[:seeds]]
        found[f"{direction}-uncorrected"] = [stepped(factor, kept, 1 - s, losses[1] - s) for s in SPREAD[:seeds]]
    return found


def test_a_velocity_that_lags_behind_the_rate_is_a_transient():
    assert c24.judge(changes()).word == "holds"
    assert c24.judge(changes(seeds=1)).word == "holds"


def test_no_transient_where_the_uncorrected_lengths_follow_at_once():
    assert c24.judge(changes(up=0, down=0)).word == "fails"
    verdict = c24.judge(changes(up=0))
    assert verdict.word == "depends" and "a transient for down" in verdict.sentence


def test_lengths_that_stay_wrong_are_no_transient():
    stuck = changes()
    for run in stuck["down-uncorrected"]:
        run["lengths"] = [1.0] * (BEFORE + AFTER)
    assert c24.judge(stuck).word == "depends"


def test_the_loss_after_the_change_is_told_with_its_interval():
    assert c24.judge(changes(losses=(1.0, 1.5))).sentence.count("no difference seen") == 0
    assert c24.judge(changes()).sentence.count("no difference seen") == 2
    drawn = c24.picture(changes())
    assert "when the rate rises" in drawn.caption and "Mean of 5 runs" in drawn.caption


def test_with_correction_the_absorbed_form_is_the_form_of_pytorch():
    """With correction, both forms give the same weights at the rates 0.1, 0.8 and 0.05. Without it they do not."""
    ends = {}
    for name in ("torch", "corrected", "uncorrected"):
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
        if name == "torch":
            optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        else:
            optimizer = c24.AbsorbedSGD([weight], 0.1, correct=name == "corrected")
        for update in range(9):
            optimizer.param_groups[0]["lr"] = (0.1, 0.8, 0.05)[update // 3]
            optimizer.zero_grad()
            (weight.pow(2) * torch.tensor([0.3, 1.0])).sum().backward()
            optimizer.step()
        ends[name] = weight.detach()
    torch.testing.assert_close(ends["corrected"], ends["torch"])
    assert not torch.allclose(ends["uncorrected"], ends["torch"])


def test_the_length_is_that_of_the_update():
    weight = torch.nn.Parameter(torch.zeros(2))
    optimizer = c24.AbsorbedSGD([weight], 0.1, correct=True)
    weight.grad = torch.tensor([3.0, 4.0])
    optimizer.step()
    optimizer.step()
    assert optimizer.lengths == pytest.approx([0.5, 0.95])
    assert weight.norm().item() == pytest.approx(1.45)


def normalised(offsets=(0.0, 0.0, 0.0, 0.0), seeds=5, scatter=1.0):
    """Return accuracies around 50 %. Those with local statistics are higher by `offsets`."""
    return {
        variant: [
            {
                "normalised": 512 >> (4 - row),
                "test_accuracy": 0.5 + offset + scatter * by,
                "test_loss": 1.4,
                "train_loss": 1.3,
            }
            for by in SPREAD[:seeds]
        ]
        for row, (variant, offset) in enumerate(zip(c30.VARIANTS, (*offsets, 0.0), strict=True))
    }


@pytest.mark.parametrize(
    ("offsets", "scatter", "word"),
    [
        ((0.0, 0.0, 0.0, 0.0), 1, "holds"),
        ((-0.01, 0.0, 0.0, 0.0), 1, "holds"),
        ((-0.08, -0.01, 0.0, 0.0), 1, "depends"),
        ((-0.08, -0.07, 0.06, 0.05), 1, "fails"),
        # The difference may be small or not, because the noise is larger than the limit.
        ((0.0, 0.0, 0.0, 0.0), 10, "no difference seen"),
        ((-0.021, 0.0, 0.0, 0.0), 1, "no difference seen"),  # There is a difference, but it may be a small one.
    ],
)
def test_local_normalisation_is_judged_by_its_intervals(offsets, scatter, word):
    assert c30.judge(normalised(offsets, scatter=scatter)).word == word


def test_one_run_shows_no_effect_of_local_normalisation():
    assert c30.judge(normalised((-0.2, -0.2, -0.2, -0.2), seeds=1)).word == "no difference seen"


def test_the_normalised_images_are_named():
    assert "more than 2 points are seen for 32 images alone" in c30.judge(normalised((-0.08, 0, 0, 0))).sentence
    drawn = c30.picture(normalised((-0.08, 0, 0, 0)))
    assert "32: 42.0 %" in drawn.alt and "within 8.0 points" in drawn.caption


def test_all_variants_use_the_same_images_in_each_update():
    recipes = [c30.recipe(variant, {"epochs": 1, "global_batch": 64}) for variant in c30.VARIANTS]
    assert {recipe.size * recipe.batch_size for recipe in recipes} == {64}
    assert [recipe.synchronised for recipe in recipes] == [False] * 4 + [True]


def test_synchronised_statistics_are_those_of_all_images_together():
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(256, (32, 3, 32, 32), generator=draw, dtype=torch.uint8)
    split = Split("train", images, torch.arange(32) % 10)
    parts = tuple(torch.arange(32).split(16))
    means = {}
    for size, used in ((2, parts), (1, (torch.arange(32),))):
        recipe = Recipe(size=size, batch_size=32 // size, synchronised=True, change=lambda images: images)
        team = Team(recipe, 0, split)
        team.update(split, used)
        means[size] = team.net[1].running_mean
    torch.testing.assert_close(means[1], means[2])


def scaled(seeds=5, **variants):
    """Return good runs, except for the given variants.

    A variant is given as its highest loss, last loss and accuracy. Its name is an optimizer and a mode, for example
    adam_scaled.
    """
    found = {}
    for variant in c31.VARIANTS:
        name, _, mode = variant.rpartition("-")
        top, last, accuracy = variants.get(f"{name.split('-')[0]}_{mode}", (2.4, 1.5, 0.5))
        runs = [{"losses": [2.3, top, last, last], "test_accuracy": accuracy + by} for by in SPREAD[:seeds]]
        found[variant] = runs
    return found


SPIKED, DEAD = (20.0, 1.9, 0.4), (20.0, 2.31, 0.1)


def test_a_spike_that_warmup_cures_for_every_optimizer():
    assert c31.judge(scaled(sgd_scaled=SPIKED, adam_scaled=SPIKED)).word == "holds"
    assert c31.judge(scaled(sgd_scaled=DEAD, adam_scaled=SPIKED)).word == "holds"


def test_a_cure_for_one_optimizer_depends():
    verdict = c31.judge(scaled(sgd_scaled=DEAD, sgd_warmup=DEAD, adam_scaled=SPIKED))
    assert verdict.word == "depends" and "warmup cures it for adam-0.001" in verdict.sentence
    assert c31.judge(scaled(sgd_scaled=DEAD)).word == "depends"  # Adam does not fail at all.


def test_a_scaled_rate_that_does_not_fail_refutes():
    assert c31.judge(scaled()).word == "fails"


def test_a_warmup_that_harms_refutes():
    assert c31.judge(scaled(sgd_scaled=SPIKED, sgd_warmup=DEAD)).word == "fails"


def test_no_cure_within_the_noise():
    assert c31.judge(scaled(sgd_scaled=SPIKED, sgd_warmup=SPIKED)).word == "no difference seen"
    assert c31.judge(scaled(1, sgd_scaled=SPIKED, adam_scaled=SPIKED)).word == "no difference seen"
    assert c31.judge(scaled(1, sgd_scaled=DEAD, adam_scaled=DEAD)).word == "no difference seen"


def test_a_loss_that_is_no_number_counts_as_diverged():
    found = scaled()
    found["sgd-0.02-scaled"][0]["losses"] = [2.3, 40.0, None]
    assert c31.diverged(found["sgd-0.02-scaled"][0]) and c31.peak(found["sgd-0.02-scaled"][0]) == math.inf
    drawn = c31.picture(found)
    assert "Diverged runs: base 0, scaled 1, warmup 0" in drawn.caption


def test_the_three_ways_to_set_the_rate():
    def factors(mode):
        return [c31.factor(mode, 4, update, 10) for update in (0, 5, 10, 39)]

    assert factors("base") == [1, 1, 1, 1]
    assert factors("scaled") == [8, 8, 8, 8]
    assert factors("warmup") == [1, 4.5, 8, 8]
