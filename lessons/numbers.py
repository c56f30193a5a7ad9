"""The numbers that the lessons' texts give, read from the saved results.

A text writes a number as `{{c04_one}}`. `number("c04_one")` returns it.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.claims.lesson_01 import c28_critical_batch_size as c28
from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from benchmarks.claims.lesson_05 import c06_decay_by_epoch as c06
from benchmarks.claims.lesson_05 import c15_path_of_an_epoch as c15
from benchmarks.claims.lesson_05 import c20_learning_rate_scaling as c20
from benchmarks.claims.lesson_05 import c29_sharp_minima as c29
from benchmarks.claims.lesson_06 import c31_warmup as c31
from benchmarks.claims.lesson_07 import c32_techniques as c32
from benchmarks.cost_models import published
from benchmarks.experiment.intervals import Difference, deviation, difference, mean_std
from benchmarks.speed import equal_time, where_it_pays
from benchmarks.speed.comparisons import links, one_core_each, savings
from benchmarks.speed.loop import gradient_bytes
from cifar.data import updates_per_epoch
from cluster.network import bits_per_second
from grader import exercises
from lessons.saved_runs import runs


def _points(accuracies: list[float]) -> str:
    return f"{100 * np.mean(accuracies):.1f}"


def _size(difference: Difference) -> str:
    """How far the mean is from zero, in points."""
    return f"{100 * abs(difference.mean):.1f}"


def _interval(difference: Difference) -> str:
    """The interval in points, without its sign."""
    low, high = sorted(abs(100 * end) for end in (difference.low, difference.high))
    return f"{low:.1f} to {high:.1f}"


def falling_gap(size: int, equal: str) -> Difference:
    return c04.gap(runs("C04"), "falling", size, equal)


def time_ahead() -> Difference:
    return c04.ahead(runs("C04"), "falling", 4)


def _c04() -> dict[str, str]:
    found, settings = runs("C04"), c04.CLAIM.settings
    batch, images, epochs = settings["batch_size"], settings["images"], settings["epochs"]
    one, four = (updates_per_epoch(images, batch, size) for size in (1, 4))
    return {
        "c04_one": _points(c04.last(found, "falling-1")),
        "c04_four": _points(c04.last(found, "falling-4-epochs")),
        "c04_four_updates": _points(c04.last(found, "falling-4-updates")),
        "c04_one_quarter": _points(c04.last(found, "falling-1-quarter")),
        "c04_loss": _size(falling_gap(4, "epochs")), "c04_loss_interval": _interval(falling_gap(4, "epochs")),
        "c04_gain": _size(falling_gap(4, "updates")), "c04_gain_interval": _interval(falling_gap(4, "updates")),
        "c04_longer": _points(c04.last(found, "falling-1-fourfold")),
        "c04_longer_gain": _size(c04.longer(found)), "c04_longer_interval": _interval(c04.longer(found)),
        "c04_time": _size(time_ahead()), "c04_time_interval": _interval(time_ahead()),
        "c04_images": f"{images:,}", "c04_batch": str(batch), "c04_global": str(4 * batch), "c04_epochs": str(epochs),
        "c04_epoch_one": str(one), "c04_epoch_four": str(four),
        "c04_updates_one": str(epochs * one), "c04_updates_four": str(epochs * four),
        "c04_updates_longer": f"{4 * epochs * one:,}", "c04_epochs_four": str(4 * epochs),
    }  # fmt: skip


def _other_05() -> dict[str, str]:
    found, gains = runs("C06"), {start: c06.gain(runs("C06"), start) for start in c06.STARTS}
    sharp = c29.sharper(runs("C29"), "large-updates")
    return {
        "c06_base": _size(gains["base"]), "c06_scaled": _size(gains["scaled"]),
        "c06_one": _points(c06.last_accuracy(found, "one")),
        "c06_by_step": _points(c06.last_accuracy(found, "base-by-step")),
        "c15_sgd": f"{np.mean(c15.powers(runs('C15'), 'sgd')):.2f}",
        "c15_adam": f"{np.mean(c15.powers(runs('C15'), 'adam')):.2f}",
        "c20_critical": f"{c20.fit(runs('C20'))[1]:.0f}",
        "c20_early": f"{2 ** c20.growth(runs('C20'), 1, 8).mean:.1f}",
        "c20_late": f"{2 ** c20.growth(runs('C20'), 8, 32).mean:.1f}",
        "c20_loss_one": f"{least_loss(1):.2f}", "c20_loss_many": f"{least_loss(32):.2f}",
        "c28_critical": f"{np.mean(c28.finding(runs('C28')).critical):.0f}",
        "c28_noise": f"{np.mean(c28.finding(runs('C28')).noise):.0f}",
        "c29_loss_epochs": f"{mean('C29', 'large-epochs', 'train_loss'):.3f}",
        "c29_loss_updates": f"{mean('C29', 'large-updates', 'train_loss'):.3f}",
        "c29_loss_small": f"{mean('C29', 'small', 'train_loss'):.3f}",
        "c29_times_updates": f"{np.exp(sharp.mean):.1f}",
        "c29_epochs": _points(values("C29", "large-epochs", "test_accuracy")),
        "c29_updates": _points(values("C29", "large-updates", "test_accuracy")),
        "c29_small": _points(values("C29", "small", "test_accuracy")),
    }  # fmt: skip


def least_loss(size: int) -> float:
    """The mean loss of some workers at the rate where it is lowest."""
    return float(np.mean(values("C20", c20.variant_of(size), "losses"), axis=0).min())


def values(id: str, variant: str, name: str) -> list[float]:
    """A value of each seed."""
    return [run[name] for run in runs(id)[variant]]


def mean(id: str, variant: str, name: str) -> float:
    return float(np.mean(values(id, variant, name)))


def _c19() -> dict[str, str]:
    """The milliseconds of a batch of 128 images in two pipelines: the preparing stages together, and the update."""
    told = {}
    for name in ("vectorised", "decoded"):
        stages = [run["stages"] for run in runs("C19")[name]]
        update = 1000 * float(np.mean([each["update"] for each in stages]))
        told[f"c19_{name}_update"] = f"{update:.0f}"
        told[f"c19_{name}_preparing"] = f"{1000 * float(np.mean([sum(each.values()) for each in stages])) - update:.0f}"
    return told


def _c31() -> dict[str, str]:
    found, told = runs("C31"), {}
    for short, name in (("low", "sgd-0.005"), ("high", "sgd-0.02"), ("adam", "adam-0.001")):
        for end, mode in (("base", "base"), ("scaled", "scaled"), ("warm", "warmup")):
            told[f"c31_{short}_{end}"] = _points(c31.accuracies(found, f"{name}-{mode}"))
    told["c31_high_peak"], told["c31_high_peak_warm"] = (
        f"{np.median([c31.peak(run) for run in found[f'sgd-0.02-{mode}']]):.1f}" for mode in ("scaled", "warmup")
    )
    return told


def c32_change(before: str, after: str) -> Difference:
    return difference(*(c32.accuracies(runs("C32"), variant) for variant in (after, before)))


CHANGES = {
    "naive": ("1-base", "8-same-base"), "shards": ("8-same-base", "8-base"), "bn_one": ("1-base", "1-bn"),
    "bn_eight": ("8-base", "8-bn"), "bn_same": ("8-same-base", "8-same-bn"), "scaled": ("8-bn", "8-scaled"),
    "warmup": ("8-scaled", "8-warmup"), "both": ("8-bn", "8-warmup"),
    "warmup_same": ("8-same-scaled", "8-same-warmup"), "scaled_same": ("8-same-base", "8-same-scaled"),
    "shards_bn": ("8-same-bn", "8-bn"),
    "tuned": (c32.CHOSEN["clipped"], c32.CHOSEN["lamb"]), "end": ("1-bn", c32.CHOSEN["lamb"]),
}  # fmt: skip
ENDS = {
    "base": "8-base", "bn": "1-bn", "eight_bn": "8-bn", "eight_scaled": "8-scaled", "eight_warmup": "8-warmup",
    "lamb": "8-lamb", "lamb_tuned": c32.CHOSEN["lamb"],
    "clipped": c32.CHOSEN["clipped"], "test_naive": "8-same-base",
}  # fmt: skip
PUBLISHED_STEP = 0.65 - 0.53  # from the published row with scaling alone to that with scaling and warmup
TRAINED = {"train_naive": "8-same-base", "train_bn": "1-bn"}


def _c32() -> dict[str, str]:
    found = {f"c32_{name}": _size(c32_change(*pair)) for name, pair in CHANGES.items()}
    found |= {f"c32_{name}": _points(c32.accuracies(runs("C32"), variant)) for name, variant in ENDS.items()}
    found |= {f"c32_{name}": _points(values("C32", variant, "train_accuracy")) for name, variant in TRAINED.items()}
    found["c32_scatter"] = f"{100 * deviation(c32.accuracies(runs('C32'), '8-same-warmup')):.1f}"
    loss = c32_change(*CHANGES["scaled_same"])
    found["c32_scaled_same_interval"] = f"{-100 * loss.high:.2f} to {-100 * loss.low:.2f}"
    for name in ("both", "end"):
        change = c32_change(*CHANGES[name])
        found[f"c32_{name}"] = f"{100 * change.mean:+.1f}"
        found[f"c32_{name}_interval"] = f"{100 * change.low:.1f} to {100 * change.high:.1f}"
    return found


def _clusters() -> dict[str, str]:
    found = where_it_pays.summary(list(published.measurements()))
    names = {
        "within": "within", "count": "count", "median": "median", "largest": "largest",
        "guess": "guess_median", "guess_largest": "guess_largest",
        "middle": "middle_median", "middle_largest": "middle_largest",
    }  # fmt: skip
    return {f"clusters_{name}": str(found[key]).removesuffix(" %") for name, key in names.items()}


def number(name: str) -> str:
    """One number, by its name. Only the results that it needs are read. Raises KeyError if there is none."""
    return GROUPS[name.partition("_")[0]]()[name]


def _cores() -> dict[str, str]:
    return {"cores_weak": f"{100 * np.median(one_core_each.speed_ups(runs('cores'), 2, 'weak')):.0f}"}


def _link_numbers() -> dict[str, str]:
    alone, gradient = links.by_rate(runs("links"), "alone"), gradient_bytes(links.NETWORK)
    update = links.seconds_alone(runs("links"))
    errors = [links.errors(runs("links"), way) for way in links.PREDICTED_WAYS]
    even = 2 / 9 * update  # the seconds of sending with which float16 is 10 % faster than the plain way
    return {
        "links_top_k": f"{np.median(links.gains(runs('links'), '2x2-100mbit-16', 'topk')):.1f}",
        "links_rounds": str(len(links.rounds(runs("links")))),
        "links_spread": f"{max(alone) / min(alone):.1f}",
        "links_alone": f"{10 * round(np.median(alone) / 10)}",
        "links_update": f"{1000 * update:.0f}",
        "links_even": f"{1000 * even:.0f}",
        "links_even_rate": f"{50 * round(8 * 1.5 * gradient / even / 50e6):,}",
        "links_error": f"{100 * np.median(np.abs(errors)):.0f}",
        "links_gradient": f"{gradient / 1e6:.1f}",
    }


def _savings() -> dict[str, str]:
    """Accuracies after the same epochs, and after the same time on links of 100 Mbit/s."""
    trained, timed, settings = runs("savings"), runs("links"), savings.CLAIM.settings
    told = {
        "savings_images": f"{settings['images']:,}", "savings_epochs": str(settings["epochs"]),
        "savings_seconds": f"{equal_time.equal_seconds(timed, '100mbit', settings['epochs']):.0f}",
        "savings_seeds": str(len(trained[savings.EXACT])),
    }  # fmt: skip
    told["savings_group"] = mean_std(savings.accuracies(trained, savings.EXACT)[:, -1], 100, 1)
    for way in ("topk", "diloco"):
        told[f"savings_{way}_cost"] = _size(savings.cost(trained, way))
    for way in (savings.EXACT, "topk", "powersgd", "local"):
        told[f"savings_{way}_time"] = mean_std(equal_time.accuracies(trained, timed, "100mbit", way), 100, 1)
    return told


def _simple() -> dict[str, str]:
    errors = [abs(simple / measured - 1) for _, way, simple, measured in simple_predictions() if way != "earlier"]
    return {"simple_error": f"{100 * np.median(errors):.0f}"}


def simple_predictions() -> Iterator[tuple[float, str, float, float]]:
    """Lesson 10's predictions: the link's bits per second, the way, and the images/s as predicted and as measured.

    A learner's copy does not have the exercise's reference, and never calls this.
    """
    batch_time, computing = exercises.get("batch_time").reference, links.seconds_alone(runs("links"))
    for name, (way, measured) in itertools.product(links.RATES, links.IN_SHORT.items()):
        rate = bits_per_second(name)
        seconds = batch_time(computing / 3, 2 * computing / 3, 6 * 50e-6, links.ring_of_four(rate), way)
        yield rate, way, 64 / seconds, float(np.median(links.speeds(runs("links"), f"2x2-{name}-16", measured)))


# The functions that make the numbers, by the first part of the numbers' names.
GROUPS = {
    "c04": _c04, "c06": _other_05, "c15": _other_05, "c19": _c19, "c20": _other_05, "c28": _other_05, "c29": _other_05,
    "c31": _c31, "c32": _c32, "clusters": _clusters, "cores": _cores, "links": _link_numbers,
    "savings": _savings, "simple": _simple,
}  # fmt: skip
