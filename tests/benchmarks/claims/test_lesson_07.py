"""Made-up runs support or contradict each step of the rebuilt table, and neighbouring variants differ by one thing."""

import pytest
import torch
from torch import nn

from benchmarks.claims.lesson_07.c32_techniques import (
    CHOSEN,
    CLAIM,
    RATES,
    STEPS,
    TUNED,
    VARIANTS,
    accuracies,
    judge,
    picture,
    recipe,
    steps,
)
from benchmarks.experiment import runner
from cifar.data import shard, shuffle

SETTINGS = {"images": 800, "epochs": 12, "batch_size": 10, "device": "cpu"}
SPREAD = (-0.004, -0.002, 0.0, 0.002, 0.004)


def runs(**means):
    """Return five runs per variant around the means. Variants without a mean have 60 %."""
    given = {name.replace("_", "-", 1): mean for name, mean in means.items()}
    return {variant: [{"test_accuracy": [0.1, given.get(variant, 0.6) + by]} for by in SPREAD] for variant in VARIANTS}


CLIMB = {"8_base": 0.44, "8_bn": 0.55, "8_scaled": 0.60, "8_warmup": 0.65, "8_lamb": 0.81}


def test_each_technique_raises_accuracy():
    assert judge(runs(**CLIMB)).word == "holds"


def test_one_step_that_raises_nothing():
    verdict = judge(runs(**CLIMB | {"8_scaled": 0.55, "8_warmup": 0.65}))
    assert verdict.word == "depends" and "raised by batch norm and warmup and LAMB alone" in verdict.sentence


def test_every_step_lowers_accuracy():
    fall = {"8_base": 0.8, "8_bn": 0.7, "8_scaled": 0.6, "8_warmup": 0.5, "8_lamb": 0.4}
    assert judge(runs(**fall)).word == "fails"


def test_within_the_noise():
    assert judge(runs()).word == "no difference seen"
    assert judge({variant: values[:1] for variant, values in runs(**CLIMB).items()}).word == "no difference seen"


def test_lamb_against_sgd_at_the_chosen_rates():
    sentence = judge(runs(**CLIMB | {"8_sgd-0.05": 0.68, "8_clipped-0.4": 0.75, "8_lamb-0.03": 0.72})).sentence
    assert "LAMB against SGD, each at the rate that one seed chose of four, +4.0 points" in sentence
    assert "LAMB against SGD with its gradient clipped, each at the rate that one seed chose of four, -3.0 " in sentence


def test_the_rates_that_have_more_seeds_are_those_that_the_first_chose():
    runs = runner.saved(CLAIM).runs
    for name in RATES:
        variants = [variant for variant in TUNED if variant.startswith(f"8-{name}-")]
        best = max(variants, key=lambda variant: accuracies(runs, variant)[0])
        assert best == CHOSEN[name] and best not in (variants[0], variants[-1]), "the best rate lies inside"
    assert set(CLAIM.seeds_to_choose) == set(TUNED) - set(CHOSEN.values())


def test_clipping_bounds_the_norm_of_all_gradients_together():
    net = nn.Linear(3, 2)
    for weight in net.parameters():
        weight.grad = torch.full_like(weight, 5.0)
    for variant, norm in (("8-sgd-0.05", 5 * 8**0.5), ("8-clipped-0.4", 1.0)):
        recipe(variant, 0, SETTINGS).before_step(net, None, 0)
        assert nn.utils.get_total_norm([weight.grad for weight in net.parameters()]) == pytest.approx(norm, rel=1e-5)


def test_some_variants_are_enough_for_a_picture_and_a_verdict():
    some = {variant: values for variant, values in runs(**CLIMB).items() if variant in ("1-base", "8-base", "8-bn")}
    assert set(steps(some)) == {"workers", "batch norm"} and judge(some).word == "holds"
    drawn = picture(some)
    assert "batch normalisation 55.0 (+11.0)" in drawn.alt and "A dot is a run" in drawn.caption


def test_neighbours_differ_by_one_thing():
    """One of network, optimizer, factor of the rate and size changes from each variant to the next."""

    def parts(variant):
        made = recipe(variant, 0, SETTINGS)
        return made.net.keywords["norm"], made.optimizer, made.factor.func, made.size

    for _, before, after in STEPS:
        assert sum(a != b for a, b in zip(parts(before), parts(after), strict=True)) == 1, (before, after)


def test_equal_batches_make_as_many_updates_as_eight_workers_on_the_same_images_each():
    order = recipe("8-same-bn", 3, SETTINGS).order
    assert len(order(0, 0)) == 100 and torch.equal(order(0, 0), shuffle(800, 3, 0)[:100])
    assert not torch.equal(order(0, 0), order(1, 0))
    assert len(shard(shuffle(800, 3, 0), 0, 8)) == 100


@pytest.mark.parametrize("variant", ["8-same-warmup", "8-warmup"])
def test_with_equal_batches_the_warmup_is_as_long_as_with_shards(variant):
    """The warmup is three epochs of 10 updates long, however many updates per epoch one worker alone would make."""
    made = recipe(variant, 0, SETTINGS)
    # Team counts 80 updates per epoch for one worker with all images, and 10 for eight workers.
    team = 80 if made.size == 1 else 10
    factors = [made.factor(update, team) for update in range(31)]
    assert factors[0] < 2 and factors[15] == pytest.approx(4.5, abs=0.5) and factors[30] == 8


@pytest.mark.parametrize("variant", TUNED)
def test_tuned_variants_climb_to_their_rate_and_fall_to_zero(variant):
    made, updates = recipe(variant, 0, SETTINGS), 12 * 10
    factors = [made.factor(update, 10) for update in range(updates)]
    assert max(factors) == pytest.approx(1, abs=0.04) and factors.index(max(factors)) in (28, 29, 30)
    assert factors[0] < 0.05 and factors[-1] < 0.02
    rate = made.optimizer(made.net()).param_groups[0]["lr"]
    assert rate == float(variant.split("-")[-1])


def test_the_published_settings():
    assert CLAIM.settings == {"images": 50_000, "epochs": 12, "batch_size": 512} and CLAIM.seeds == 5
