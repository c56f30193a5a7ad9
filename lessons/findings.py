"""The numbers that the lessons' texts give, read from the saved results, and what must be true for their sentences.

A text writes a number as `{{c04_one}}`. `python -m lessons.findings` writes all numbers to `solutions/numbers.json`,
and `make build` puts them into the notebooks. SENTENCES holds the words of a text that are true of the saved results,
but might not be true of new ones. A test fails and names the sentence if that happens.
"""

import functools
import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks import claims, speed
from benchmarks.claims.lesson_01 import c28_critical_batch_size as c28
from benchmarks.claims.lesson_02 import c19_input_pipeline as c19
from benchmarks.claims.lesson_03 import c05_smaller_local_batch as c05
from benchmarks.claims.lesson_04 import c26_overlap as c26
from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from benchmarks.claims.lesson_05 import c06_decay_by_epoch as c06
from benchmarks.claims.lesson_05 import c15_path_of_an_epoch as c15
from benchmarks.claims.lesson_05 import c20_learning_rate_scaling as c20
from benchmarks.claims.lesson_05 import c29_sharp_minima as c29
from benchmarks.claims.lesson_06 import c24_momentum_correction as c24
from benchmarks.claims.lesson_06 import c30_ghost_batch_norm as c30
from benchmarks.claims.lesson_06 import c31_warmup as c31
from benchmarks.claims.lesson_07 import c32_techniques as c32
from benchmarks.cost_models import published
from benchmarks.experiment import results, runner
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.intervals import Difference, deviation, difference, paired
from benchmarks.experiment.runner import Series
from benchmarks.speed import where_it_pays
from benchmarks.speed.comparisons import links, one_core_each
from benchmarks.speed.loop import gradient_bytes
from cifar.data import augment, updates_per_epoch
from cluster.network import bits_per_second
from grader import exercises
from grader.common.atomic_write import write_whole
from grader.notebooks.build import SOLUTIONS, lessons
from lessons import glossary
from lessons.minutes import NOT_ESTIMATED, minutes

NUMBERS_FILE = SOLUTIONS / "numbers.json"


class Sentence(NamedTuple):
    """Words of a lesson, as they stand in its text, and whether the saved results agree with them."""

    lesson: str
    words: str
    true: Callable[[], bool]


@functools.cache
def runs(id: str) -> Runs:
    """The saved runs of a claim, or of a comparison of speeds."""
    return series(id).runs


def series(id: str) -> Series:
    """The committed result of a claim, or of a comparison of speeds."""
    if id in speed.IDS:
        return runner.saved(speed.get(id), results.RESULTS / "speed" / id)
    return runner.saved(claims.get(id))


def _points(accuracies: list[float]) -> str:
    return f"{100 * np.mean(accuracies):.1f}"


def _size(difference: Difference) -> str:
    """How far the mean is from zero, in points."""
    return f"{100 * abs(difference.mean):.1f}"


def _interval(difference: Difference) -> str:
    """The interval in points, without its sign."""
    low, high = sorted(abs(100 * end) for end in (difference.low, difference.high))
    return f"{low:.1f} to {high:.1f}"


def _falling(size: int, equal: str) -> Difference:
    return c04.gap(runs("C04"), "falling", size, equal)


def _time() -> Difference:
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
        "c04_loss": _size(_falling(4, "epochs")), "c04_loss_interval": _interval(_falling(4, "epochs")),
        "c04_gain": _size(_falling(4, "updates")), "c04_gain_interval": _interval(_falling(4, "updates")),
        "c04_longer": _points(c04.last(found, "falling-1-fourfold")),
        "c04_longer_gain": _size(c04.longer(found)), "c04_longer_interval": _interval(c04.longer(found)),
        "c04_time": _size(_time()), "c04_time_interval": _interval(_time()),
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
        "c20_loss_one": f"{_least_loss(1):.2f}", "c20_loss_many": f"{_least_loss(32):.2f}",
        "c28_critical": f"{np.mean(c28.finding(runs('C28')).critical):.0f}",
        "c28_noise": f"{np.mean(c28.finding(runs('C28')).noise):.0f}",
        "c29_loss_epochs": f"{_mean('C29', 'large-epochs', 'train_loss'):.3f}",
        "c29_loss_updates": f"{_mean('C29', 'large-updates', 'train_loss'):.3f}",
        "c29_loss_small": f"{_mean('C29', 'small', 'train_loss'):.3f}",
        "c29_times_updates": f"{np.exp(sharp.mean):.1f}",
        "c29_epochs": _points(_of("C29", "large-epochs", "test_accuracy")),
        "c29_updates": _points(_of("C29", "large-updates", "test_accuracy")),
        "c29_small": _points(_of("C29", "small", "test_accuracy")),
    }  # fmt: skip


def _least_loss(size: int) -> float:
    """The mean loss of some workers at the rate where it is lowest."""
    return float(np.mean(_of("C20", c20.variant_of(size), "losses"), axis=0).min())


def _of(id: str, variant: str, name: str) -> list[float]:
    """A value of each seed."""
    return [run[name] for run in runs(id)[variant]]


def _mean(id: str, variant: str, name: str) -> float:
    return float(np.mean(_of(id, variant, name)))


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


def _c32_change(before: str, after: str) -> Difference:
    return difference(*(c32.accuracies(runs("C32"), variant) for variant in (after, before)))


CHANGES = {
    "naive": ("1-base", "8-same-base"), "shards": ("8-same-base", "8-base"), "bn_one": ("1-base", "1-bn"),
    "bn_eight": ("8-base", "8-bn"), "bn_same": ("8-same-base", "8-same-bn"), "scaled": ("8-bn", "8-scaled"),
    "warmup": ("8-scaled", "8-warmup"), "both": ("8-bn", "8-warmup"),
    "warmup_same": ("8-same-scaled", "8-same-warmup"), "scaled_same": ("8-same-base", "8-same-scaled"),
    "techniques_same": ("8-same-base", "8-same-warmup"), "shards_bn": ("8-same-bn", "8-bn"),
    "tuned": (c32.CHOSEN["clipped"], c32.CHOSEN["lamb"]), "end": ("1-bn", c32.CHOSEN["lamb"]),
}  # fmt: skip
ENDS = {
    "base": "8-base", "bn": "1-bn", "eight_bn": "8-bn", "eight_scaled": "8-scaled", "eight_warmup": "8-warmup",
    "lamb": "8-lamb", "lamb_tuned": c32.CHOSEN["lamb"],
    "clipped": c32.CHOSEN["clipped"], "test_naive": "8-same-base",
}  # fmt: skip
PUBLISHED_STEP = 0.65 - 0.44  # from the naive row of the published table to that with scaling and warmup
TRAINED = {"train_naive": "8-same-base", "train_bn": "1-bn"}


def _c32() -> dict[str, str]:
    found = {f"c32_{name}": _size(_c32_change(*pair)) for name, pair in CHANGES.items()}
    found |= {f"c32_{name}": _points(c32.accuracies(runs("C32"), variant)) for name, variant in ENDS.items()}
    found |= {f"c32_{name}": _points(_of("C32", variant, "train_accuracy")) for name, variant in TRAINED.items()}
    found["c32_scatter"] = f"{100 * deviation(c32.accuracies(runs('C32'), '8-same-warmup')):.1f}"
    loss = _c32_change(*CHANGES["scaled_same"])
    found["c32_scaled_same_interval"] = f"{-100 * loss.high:.1f} to {-100 * loss.low:.1f}"
    for name in ("both", "end"):
        change = _c32_change(*CHANGES[name])
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


def numbers() -> dict[str, str]:
    """All numbers of the texts, by name."""
    found = {name: value for group in GROUPS.values() for name, value in group().items()}
    return found | _minutes() | {"glossary": glossary.table()}


def number(name: str) -> str:
    """One number, by its name. Only the results that it needs are read. Raises KeyError if there is none."""
    return GROUPS[name.partition("_")[0]]()[name]


def _cores() -> dict[str, str]:
    found = runner.saved(speed.get("cores"), results.RESULTS / "speed" / "cores").runs
    return {"cores_weak": f"{100 * np.median(one_core_each.speed_ups(found, 2, 'weak')):.0f}"}


def _link_numbers() -> dict[str, str]:
    alone = _alone()
    return {
        "links_top_k": f"{np.median(links.gains(_links(), '2x2-100mbit-16', 'topk')):.1f}",
        "links_spread": f"{max(alone) / min(alone):.1f}",
        "links_alone": f"{10 * round(np.median(alone) / 10)}",
        "links_gradient": f"{gradient_bytes(links.NETWORK) / 1e6:.1f}",
    }


def _alone() -> list[float]:
    """The images/s without exchange of 2 hosts with 2 workers and 16 images each, beside links of each rate."""
    return [float(np.median(links.speeds(_links(), f"2x2-{rate}-16", "alone"))) for rate in links.RATES]


def _simple() -> dict[str, str]:
    errors = [abs(simple / measured - 1) for way, simple, measured in _simple_predictions() if way != "earlier"]
    return {"simple_error": f"{100 * np.median(errors):.0f}"}


def _simple_predictions() -> Iterator[tuple[str, float, float]]:
    """Lesson 10's predictions: the way, and the images/s by the exercise's function and as measured.

    A learner's copy does not have the exercise's reference, and never calls this.
    """
    batch_time = exercises.get("batch_time").reference
    for rate, (way, name) in itertools.product(links.RATES, links.IN_SHORT.items()):
        seconds = batch_time(0.03, 0.06, 6 * 50e-6, links.ring_of_four(bits_per_second(rate)), way)
        yield way, 64 / seconds, float(np.median(links.speeds(_links(), f"2x2-{rate}-16", name)))


# The functions that make the numbers, by the first part of the numbers' names.
GROUPS = {
    "c04": _c04, "c06": _other_05, "c15": _other_05, "c19": _c19, "c20": _other_05, "c28": _other_05, "c29": _other_05,
    "c31": _c31, "c32": _c32, "clusters": _clusters, "cores": _cores, "links": _link_numbers,
    "simple": _simple,
}  # fmt: skip


def _minutes() -> dict[str, str]:
    texts = {lesson.name[:2]: lesson for lesson in lessons(SOLUTIONS)}
    return {f"minutes_{number}": str(minutes(text)) for number, text in texts.items() if number not in NOT_ESTIMATED}


LAB_12 = "12_lab_of_lesson_02"
LAB_13, LAB_15, LAB_16 = "13_lab_of_lesson_03", "15_lab_of_lesson_05", "16_lab_of_lesson_06"
LAB_17 = "17_lab_of_lesson_07"
LESSON_01, LESSON_02 = "01_gradient_descent_and_noise", "02_one_worker"
LESSON_03, LESSON_04 = "03_data_parallelism_by_hand", "04_horovod"
LESSON_05, LESSON_06, LESSON_07 = "05_why_it_converges_worse", "06_techniques", "07_famous_results"
LESSON_10 = "10_what_comes_next"
SENTENCES = (
    Sentence(
        "00_start_here", "Is it so in the picture? Look at the ends of the lines.",
        lambda: min(c04.last(runs("C04"), "falling-1")) > max(c04.last(runs("C04"), "falling-4-epochs")),
    ),
    Sentence(
        LAB_13, "on this machine it is too small to be seen",
        lambda: not any(c05.price(runs("C05"), size, "_alone").seen for size in ("2_workers", "4_workers")),
    ),
    Sentence(
        LAB_13, "Compared with images drawn at random, no difference was seen.",
        lambda: not paired(
            _of("C25", "one shuffle", "test_accuracy"), _of("C25", "with replacement", "test_accuracy")
        ).seen,
    ),
    Sentence(
        LAB_12, "`plain` has the lowest training loss, and `distorted` has the highest test accuracy.",
        lambda: min(runs("C07"), key=lambda arm: np.mean(_of("C07", arm, "train_loss"))) == "plain"
        and max(runs("C07"), key=lambda arm: np.mean(_of("C07", arm, "test_accuracy"))) == "distorted",
    ),
    Sentence(
        LESSON_04, "overlap saved nothing in our runs.",
        lambda: all(
            c26.times(runs("C26"), size)["on"].mean() > 0.98 * c26.times(runs("C26"), size)["off"].mean()
            for size in c26.SIZES
        ),
    ),
    Sentence(LESSON_05, "All seeds agree, so it is not (d).", lambda: _falling(4, "epochs").high < 0),
    Sentence(LESSON_05, "points *more* than one worker reaches", lambda: _falling(4, "updates").low > 0),
    Sentence(
        LESSON_05, "how much of the four workers' gain comes from",
        lambda: _falling(2, "updates").low > 0 and _falling(4, "updates").low > 0,
    ),
    Sentence(
        LESSON_05, "So four workers are not needed for such a result.", lambda: c04.longer(runs("C04")).low > 0,
    ),
    Sentence(LESSON_05, "In the same *time*, four workers are", lambda: _time().low > 0),
    Sentence(LESSON_05, "In the same *epochs*, they are", lambda: _falling(4, "epochs").high < 0),
    Sentence(
        LESSON_05, "With two workers no difference was seen at equal epochs",
        lambda: not _falling(2, "epochs").seen and not c04.gap(runs("C04"), "constant", 2, "epochs").seen,
    ),
    *(
        Sentence(lesson, found, lambda: all(c06.gain(runs("C06"), start).high < 0 for start in c06.STARTS))
        for lesson, found in (
            (LESSON_05, "the late schedule ended higher"), (LAB_15, "The late schedule ends higher"),
        )
    ),
    Sentence(
        LAB_15, "From the scaled rate, both schedules end far below one worker",
        lambda: max(
            np.mean(c06.last_accuracy(runs("C06"), f"scaled-{key}")) for key in ("by-step", "by-epoch")
        ) < np.mean(c06.last_accuracy(runs("C06"), "one")) - 0.1,
    ),
    Sentence(
        LAB_15, "So both fall a little more slowly than $1/K$.",
        lambda: all(-1 < np.mean(c15.powers(runs("C15"), name)) < -0.75 for name in ("sgd", "adam")),
    ),
    Sentence(
        LAB_15, "A slope steeper than -1 would show noise that was averaged away, and these runs do not show that.",
        lambda: np.mean(c15.powers(runs("C15"), "sgd")) > -1,
    ),
    Sentence(
        LESSON_01, "one GPU with 256 images would already be beyond the critical batch size.",
        lambda: np.mean(c28.finding(runs("C28")).critical) < 256,
    ),
    *(
        Sentence(lesson, found, lambda: max(runs("C19"), key=_prefetching) == "decoded")
        for lesson, found in ((LESSON_02, "The answer is `decoded`."), (LAB_12, "`decoded` gains most"))
    ),
    Sentence(
        LESSON_02, "5 × 5 × 2 = 50 versions", lambda: inspect.signature(augment).parameters["shift"].default == 2,
    ),
    Sentence(
        LESSON_02, "Each bar on the right ends near its diamond",
        lambda: all(
            abs(np.divide(*c19.speeds(runs("C19"), name, way)) - 1) < 0.05
            for name in ("vectorised", "decoded") for way in ("in_turn", "prefetched")
        ),
    ),
    Sentence(
        LAB_12, "In the saved runs this fits within a few per cent for the lessons' network.",
        lambda: all(
            abs(np.divide(*c19.speeds(runs("C19"), name, way)) - 1) < 0.05
            for name in runs("C19") if name != c19.SMALL for way in ("in_turn", "prefetched")
        ),
    ),
    Sentence(
        LAB_12, "`loop` with prefetching is as fast as `vectorised`",
        lambda: c19.speeds(runs("C19"), "loop", "prefetched")[0]
        > 0.95 * c19.speeds(runs("C19"), "vectorised", "in_turn")[0],
    ),
    Sentence(
        LAB_12, "In our saved runs of `decoded`, preparation is the slower side.",
        lambda: _share_of_preparation("decoded") > 0.5,
    ),
    Sentence(
        LAB_12, "The other four pipelines have one short side.",
        lambda: all(
            min(share := _share_of_preparation(name), 1 - share) < 0.25 for name in runs("C19") if name != "decoded"
        ),
    ),
    Sentence(
        LESSON_05, "A better rate makes up for some of the missing updates, and not for all.",
        lambda: _least_loss(32) > _least_loss(8) > _least_loss(1),
    ),
    Sentence(
        LESSON_05, "some tens to a hundred images",
        lambda: 10 < c20.fit(runs("C20"))[1] < 150 and 10 < np.mean(c28.finding(runs("C28")).critical) < 150,
    ),
    Sentence(
        LAB_15, "At equal epochs the large batch has the higher training loss",
        lambda: _mean("C29", "large-epochs", "train_loss") > _mean("C29", "small", "train_loss"),
    ),
    Sentence(
        LAB_15, "At equal updates it has the lower loss",
        lambda: _mean("C29", "large-updates", "train_loss") < _mean("C29", "small", "train_loss")
        and c29.sharper(runs("C29"), "large-updates").low > 0,
    ),
    *(
        Sentence(
            lesson, found,
            lambda: c29.sharper(runs("C29"), "large-epochs").mean > 2 * c29.sharper(runs("C29"), "large-updates").mean
            and paired(_of("C29", "large-updates", "test_accuracy"), _of("C29", "small", "test_accuracy")).high < 0,
        )
        for lesson, found in (
            (LESSON_05, "most of the sharpness goes away. But the accuracy does not come back."),
            (LAB_15, "Here most of the sharpness goes away, and the accuracy does not come back"),
        )
    ),
    Sentence(
        LESSON_06, "the training loss rises towards small batches, while the accuracy stays",
        lambda: _mean("C30", "local-16", "train_loss") > _mean("C30", "local-2", "train_loss")
        and not any(change.seen for change in c30.effects(runs("C30")).values()),
    ),
    Sentence(
        LESSON_06, "So from 32 images on each worker, no difference was seen",
        lambda: min(c30.effects(runs("C30"))) == 32
        and not any(change.seen for change in c30.effects(runs("C30")).values()),
    ),
    Sentence(LESSON_06, "Scaling pays:", lambda: _scaled("sgd-0.005", "scaled").low > 0),
    Sentence(LESSON_06, "but the accuracies end together", lambda: not c31.gained(runs("C31"), "sgd-0.005").seen),
    Sentence(LESSON_06, "Eight times this rate is too much:", lambda: _scaled("sgd-0.02", "scaled").high < 0),
    Sentence(
        LESSON_06, "Warmup has helped, and not cured.",
        lambda: c31.gained(runs("C31"), "sgd-0.02").low > 0 > _scaled("sgd-0.02", "warmup").high,
    ),
    Sentence(LESSON_06, "It was not safe:", lambda: _scaled("adam-0.001", "scaled").high < 0),
    Sentence(
        LESSON_06, "Here warmup is the cure, and brings back",
        lambda: c31.cured(runs("C31"), "adam-0.001") and abs(_scaled("adam-0.001", "warmup").mean) < 0.02,
    ),
    Sentence(
        LESSON_06, "linear scaling has paid once",
        lambda: [_scaled(name, "warmup").low > 0 for name in ("sgd-0.005", "sgd-0.02", "adam-0.001")]
        == [True, False, False],
    ),
    Sentence(
        LAB_16, "after the fall, the loss is higher without correction",
        lambda: paired(*c24.excess(runs("C24"), "down")).low > 0,
    ),
    Sentence(
        LAB_16, "After the rise, no difference of the loss was seen.",
        lambda: not paired(*c24.excess(runs("C24"), "up")).seen,
    ),
    Sentence(
        LESSON_06, "On eight workers it ends lower than the script without any technique.",
        lambda: _c32_change("8-base", "8-lamb").high < 0,
    ),
    Sentence(
        LAB_17, "Plain SGD is nearly as good at its lowest rate",
        lambda: abs(np.subtract(*(c32.accuracies(runs("C32"), f"8-sgd-{rate}")[0] for rate in (0.025, 0.05)))) < 0.01,
    ),
    Sentence(LESSON_07, "points are the price of missing updates.", lambda: _seen("naive", -1) and _seen("shards", 1)),
    Sentence(
        LESSON_07, "So the few updates are most of the reason.",
        lambda: _c32_change(*CHANGES["bn_same"]).low > 2 * _c32_change(*CHANGES["bn_one"]).mean,
    ),
    Sentence(LESSON_07, "So warmup repairs what scaling broke.", lambda: _seen("scaled", -1) and _seen("warmup", 1)),
    Sentence(LESSON_07, "both change. No difference is seen", lambda: _seen("both", 0)),
    Sentence(LESSON_07, "The bootcamp's own pair, 53 and 65 %, comes back here", lambda: _seen("warmup_same", 1)),
    Sentence(LESSON_07, "The table gains 9 points. Our runs lose", lambda: _seen("scaled_same", -1)),
    Sentence(
        LESSON_07, "The order comes back, with about half of the step.",
        lambda: _seen("techniques_same", 1)
        and 0.35 < _c32_change(*CHANGES["techniques_same"]).mean / PUBLISHED_STEP < 0.65,
    ),
    Sentence(LESSON_07, "and with it they bring", lambda: _seen("shards_bn", 1) and _seen("shards", 1)),
    Sentence(
        LESSON_07, "the line of `8-same-base` lies nearly on the line of `1-base`",
        lambda: abs(_at_one_epoch("8-same-base") - _at_one_epoch("1-base")) < 0.02,
    ),
    Sentence(
        LESSON_07, "The line of `8-base` lies higher",
        lambda: _at_one_epoch("8-base") > _at_one_epoch("1-base") + 0.02,
    ),
    Sentence(
        LESSON_07, "move apart as the network learns its training images",
        lambda: abs(_flattered("8-same-base")) < 0.01 < _flattered("1-base") < _flattered("1-bn"),
    ),
    Sentence(
        LESSON_07, "of eight workers with shards and no technique at all",
        lambda: _c32_change("8-base", "8-lamb").high < 0,
    ),
    Sentence(
        LESSON_07, "The second row is the fairest of the three:",
        lambda: _c32_change(c32.CHOSEN["clipped"], c32.CHOSEN["lamb"]).low > 0,
    ),
    Sentence(
        LAB_17, "the mean of the five runs is as high as the run by which we chose.",
        lambda: all(abs(_lucky(name)) < 0.003 for name in ("clipped", "lamb")),
    ),
    Sentence(
        LAB_17, "because one of its five runs ended far below the others.",
        lambda: 0.005 < _lucky("sgd") < 0.015 and sorted(c32.accuracies(runs("C32"), c32.CHOSEN["sgd"]))[1] > 0.67
        and min(c32.accuracies(runs("C32"), c32.CHOSEN["sgd"])) < 0.62,
    ),
    Sentence(LAB_17, "and no difference is seen. So a good recipe", lambda: _seen("end", 0)),
    Sentence(
        LESSON_10, "Stock Horovod exchanges after each batch, too, and it is slower on all links.",
        lambda: all(np.median(links.gains(_links(), f"2x2-{rate}-16", "stock")) < 0.95 for rate in links.RATES),
    ),
    Sentence(
        LESSON_10, "no other way that exchanges the gradient after every batch of this size is much faster.",
        lambda: max(_gain(way) for way in ("stock", "each", "parts", "fp16", "ddp", "powersgd", "topk")) < 1.1,
    ),
    Sentence(
        LESSON_10, "So an update of 64 images takes about 90 ms.", lambda: abs(64 / np.median(_alone()) - 0.09) < 0.005,
    ),
    Sentence(
        LESSON_10, "The model is too good for the way that begins earlier",
        lambda: all(simple > measured for way, simple, measured in _simple_predictions() if way == "earlier"),
    ),
    Sentence(
        LESSON_10, "the plain way loses most of the speed. Top-k and PowerSGD keep most of it.",
        lambda: _kept("group") < 0.5 < min(_kept("topk"), _kept("powersgd")),
    ),
)  # fmt: skip


def _prefetching(pipeline: str) -> float:
    """A pipeline's speed in C19 with prefetching, divided by its speed without, over the seeds."""
    return float(np.mean([run["prefetched"] / run["in_turn"] for run in runs("C19")[pipeline]]))


def _share_of_preparation(pipeline: str) -> float:
    """The share of an image's time in C19 that its preparation takes, if the stages do not overlap."""
    return float(np.mean([1 - run["stages"]["update"] / sum(run["stages"].values()) for run in runs("C19")[pipeline]]))


def _lucky(optimizer: str) -> float:
    """By how much the run by which a rate was chosen in C32 is more accurate than the mean of all seeds."""
    found = c32.accuracies(runs("C32"), c32.CHOSEN[optimizer])
    return float(found[0] - np.mean(found))


def _kept(way: str) -> float:
    """The share of the speed without exchange that a way keeps: 2 hosts with 2 workers, 100 Mbit/s, 16 images."""
    return float(np.median(links.gains(_links(), "2x2-100mbit-16", way, "alone")))


def _gain(way: str) -> float:
    """A way's speed divided by the plain way's, at 10 Gbit/s."""
    return float(np.median(links.gains(_links(), "2x2-10gbit-16", way, "group")))


def _links() -> Runs:
    return runs("links")


def _seen(name: str, sign: int) -> bool:
    """Whether a change in C32 is a gain (1), a loss (-1), or not seen (0)."""
    change = _c32_change(*CHANGES[name])
    return (change.seen * (1 if change.mean > 0 else -1)) == sign


def _at_one_epoch(variant: str) -> float:
    """The mean test accuracy in C32 after as many updates as one worker makes in its first epoch."""
    found = runs("C32")
    updates, first = found[variant][0]["updates"], found["1-base"][0]["updates"][0]
    return float(np.interp(first, updates, np.mean([run["test_accuracy"] for run in found[variant]], axis=0)))


def _flattered(variant: str) -> float:
    """The accuracy in C32 on training images minus that on test images."""
    return _mean("C32", variant, "train_accuracy") - float(np.mean(c32.accuracies(runs("C32"), variant)))


def _scaled(name: str, mode: str) -> Difference:
    """The accuracy of C31 at eight times the rate, with warmup or without, minus that at the base rate."""
    return paired(*(c31.accuracies(runs("C31"), f"{name}-{one}") for one in (mode, "base")))


def main() -> None:
    """Write the numbers."""
    write_whole(NUMBERS_FILE, json.dumps(numbers(), indent=1) + "\n")


if __name__ == "__main__":
    main()
