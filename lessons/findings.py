"""What must be true for the sentences of the lessons' texts, and the file of the numbers that the texts give.

`python -m lessons.findings` writes all numbers to `solutions/numbers.json`, and `make build` puts them into the
notebooks. SENTENCES holds the words of a text that are true of the saved results, but might not be true of new ones. A
test fails and names the sentence if that happens.
"""

import inspect
import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

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
from benchmarks.experiment.intervals import Difference, paired
from benchmarks.speed import equal_time
from benchmarks.speed.comparisons import links, savings
from cifar.data import augment
from grader.common.atomic_write import write_whole
from grader.notebooks.build import SOLUTIONS, lessons
from lessons import glossary
from lessons.minutes import NOT_ESTIMATED, minutes
from lessons.numbers import (
    CHANGES,
    GROUPS,
    PUBLISHED_STEP,
    c32_change,
    falling_gap,
    least_loss,
    mean,
    simple_predictions,
    time_ahead,
    values,
)
from lessons.saved_runs import runs

NUMBERS_FILE = SOLUTIONS / "numbers.json"


class Sentence(NamedTuple):
    """Words of a lesson, as they stand in its text, and whether the saved results agree with them."""

    lesson: str
    words: str
    true: Callable[[], bool]


def numbers() -> dict[str, str]:
    """All numbers of the texts, by name."""
    found = {name: value for group in GROUPS.values() for name, value in group().items()}
    return found | _minutes() | {"glossary": glossary.table()}


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
            values("C25", "one shuffle", "test_accuracy"), values("C25", "with replacement", "test_accuracy")
        ).seen,
    ),
    Sentence(
        LAB_12, "`plain` has the lowest training loss, and `distorted` has the highest test accuracy.",
        lambda: min(runs("C07"), key=lambda arm: np.mean(values("C07", arm, "train_loss"))) == "plain"
        and max(runs("C07"), key=lambda arm: np.mean(values("C07", arm, "test_accuracy"))) == "distorted",
    ),
    Sentence(
        LESSON_04, "overlap saved nothing in our runs.",
        lambda: all(
            c26.times(runs("C26"), size)["on"].mean() > 0.98 * c26.times(runs("C26"), size)["off"].mean()
            for size in c26.SIZES
        ),
    ),
    Sentence(LESSON_05, "All seeds agree, so it is not (d).", lambda: falling_gap(4, "epochs").high < 0),
    Sentence(LESSON_05, "points *more* than one worker reaches", lambda: falling_gap(4, "updates").low > 0),
    Sentence(
        LESSON_05, "how much of the four workers' gain comes from",
        lambda: falling_gap(2, "updates").low > 0 and falling_gap(4, "updates").low > 0,
    ),
    Sentence(
        LESSON_05, "So four workers are not needed for such a result.", lambda: c04.longer(runs("C04")).low > 0,
    ),
    Sentence(LESSON_05, "In the same *time*, four workers are", lambda: time_ahead().low > 0),
    Sentence(LESSON_05, "In the same *epochs*, they are", lambda: falling_gap(4, "epochs").high < 0),
    Sentence(
        LESSON_05, "With two workers no difference was seen at equal epochs",
        lambda: not falling_gap(2, "epochs").seen and not c04.gap(runs("C04"), "constant", 2, "epochs").seen,
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
        lambda: least_loss(32) > least_loss(8) > least_loss(1),
    ),
    Sentence(
        LESSON_05, "some tens to a hundred images",
        lambda: 10 < c20.fit(runs("C20"))[1] < 150 and 10 < np.mean(c28.finding(runs("C28")).critical) < 150,
    ),
    Sentence(
        LAB_15, "At equal epochs the large batch has the higher training loss",
        lambda: mean("C29", "large-epochs", "train_loss") > mean("C29", "small", "train_loss"),
    ),
    Sentence(
        LAB_15, "At equal updates it has the lower loss",
        lambda: mean("C29", "large-updates", "train_loss") < mean("C29", "small", "train_loss")
        and c29.sharper(runs("C29"), "large-updates").low > 0,
    ),
    *(
        Sentence(
            lesson, found,
            lambda: c29.sharper(runs("C29"), "large-epochs").mean > 2 * c29.sharper(runs("C29"), "large-updates").mean
            and paired(
                values("C29", "large-updates", "test_accuracy"), values("C29", "small", "test_accuracy")
            ).high < 0,
        )
        for lesson, found in (
            (LESSON_05, "most of the sharpness goes away. But the accuracy does not come back."),
            (LAB_15, "Here most of the sharpness goes away, and the accuracy does not come back"),
        )
    ),
    Sentence(
        LESSON_06, "the training loss rises towards small batches, while the accuracy stays",
        lambda: mean("C30", "local-16", "train_loss") > mean("C30", "local-2", "train_loss")
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
        lambda: c32_change("8-base", "8-lamb").high < 0,
    ),
    Sentence(
        LAB_17, "Plain SGD is nearly as good at its lowest rate",
        lambda: abs(np.subtract(*(c32.accuracies(runs("C32"), f"8-sgd-{rate}")[0] for rate in (0.025, 0.05)))) < 0.01,
    ),
    Sentence(LESSON_07, "points are the price of missing updates.", lambda: _seen("naive", -1) and _seen("shards", 1)),
    Sentence(
        LESSON_07, "So the few updates are most of the reason.",
        lambda: c32_change(*CHANGES["bn_same"]).low > 2 * c32_change(*CHANGES["bn_one"]).mean,
    ),
    Sentence(LESSON_07, "So warmup repairs what scaling broke.", lambda: _seen("scaled", -1) and _seen("warmup", 1)),
    Sentence(LESSON_07, "both change. No difference is seen", lambda: _seen("both", 0)),
    Sentence(LESSON_07, "The bootcamp's own pair, 53 and 65 %, comes back here", lambda: _seen("warmup_same", 1)),
    Sentence(LESSON_07, "It gains 9 points in the table, and loses", lambda: _seen("scaled_same", -1)),
    Sentence(
        LESSON_07, "so this step comes back.",
        lambda: _seen("warmup_same", 1) and abs(c32_change(*CHANGES["warmup_same"]).mean - PUBLISHED_STEP) < 0.02,
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
        lambda: c32_change("8-base", "8-lamb").high < 0,
    ),
    Sentence(
        LESSON_07, "The fairest pair is `8-clipped-0.4` and `8-lamb-0.03`.",
        lambda: c32_change(c32.CHOSEN["clipped"], c32.CHOSEN["lamb"]).low > 0,
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
        lambda: all(np.median(links.gains(runs("links"), f"2x2-{rate}-16", "stock")) < 0.95 for rate in links.RATES),
    ),
    Sentence(
        LESSON_10, "DDP gains most in between, where the exchange takes about as long as the backward pass.",
        lambda: _gain("ddp", "500mbit") > 1.1 and _gain("ddp", "500mbit") > max(_gain("ddp"), _gain("ddp", "50mbit")),
    ),
    Sentence(
        LESSON_10, "no other way that exchanges the gradient after every batch of this size is much faster.",
        lambda: max(_gain(way) for way in ("stock", "each", "parts", "fp16", "ddp", "powersgd", "topk")) < 1.1,
    ),
    Sentence(
        LESSON_10, "For the other ways, no difference is seen.",
        lambda: savings.cost(runs("savings"), "diloco").high < 0
        and not any(savings.cost(runs("savings"), way).seen for way in ("fp16", "powersgd", "topk", "local")),
    ),
    Sentence(LESSON_10, "Even top-k is one of them.", lambda: savings.cost(runs("savings"), "topk").mean < -0.03),
    Sentence(
        LESSON_10, "On the slow link, time decides. Top-k has trained all its epochs",
        lambda: min(savings.WAYS, key=_seconds_of_an_epoch) == "topk"
        and min(_after_equal_time(way) for way in ("topk", "powersgd", "local"))
        > _after_equal_time(savings.EXACT) + 0.08,
    ),
    Sentence(
        LESSON_10, "it is still in its third epoch.",
        lambda: 2 < 6 * _seconds_of_an_epoch("topk") / _seconds_of_an_epoch(savings.EXACT) < 3,
    ),
    Sentence(
        LESSON_10, "On links of 200 Mbit/s or less, the model is too good for the way that begins earlier.",
        lambda: _always_too_good() == {"earlier"},
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
    return float(np.median(links.gains(runs("links"), "2x2-100mbit-16", way, "alone")))


def _gain(way: str, rate: str = "10gbit") -> float:
    """A way's speed divided by the plain way's, over links of this rate: 2 hosts with 2 workers, 16 images."""
    return float(np.median(links.gains(runs("links"), f"2x2-{rate}-16", way, "group")))


def _always_too_good() -> set[str]:
    """The ways whose predictions in lesson 10 are too good on all links of 200 Mbit/s or less."""
    slow = [(way, simple > found) for rate, way, simple, found in simple_predictions() if rate <= 200e6]
    return {way for way, _ in slow} - {way for way, too_good in slow if not too_good}


def _seconds_of_an_epoch(way: str) -> float:
    """The seconds of an epoch of `savings` over links of 100 Mbit/s."""
    return equal_time.epoch_seconds(runs("links"), "100mbit", way)


def _after_equal_time(way: str) -> float:
    """The mean accuracy in `savings` after the time in which top-k trains all epochs over links of 100 Mbit/s."""
    return float(np.mean(equal_time.accuracies(runs("savings"), runs("links"), "100mbit", way)))


def _seen(name: str, sign: int) -> bool:
    """Whether a change in C32 is a gain (1), a loss (-1), or not seen (0)."""
    change = c32_change(*CHANGES[name])
    return (change.seen * (1 if change.mean > 0 else -1)) == sign


def _at_one_epoch(variant: str) -> float:
    """The mean test accuracy in C32 after as many updates as one worker makes in its first epoch."""
    found = runs("C32")
    updates, first = found[variant][0]["updates"], found["1-base"][0]["updates"][0]
    return float(np.interp(first, updates, np.mean([run["test_accuracy"] for run in found[variant]], axis=0)))


def _flattered(variant: str) -> float:
    """The accuracy in C32 on training images minus that on test images."""
    return mean("C32", variant, "train_accuracy") - float(np.mean(c32.accuracies(runs("C32"), variant)))


def _scaled(name: str, mode: str) -> Difference:
    """The accuracy of C31 at eight times the rate, with warmup or without, minus that at the base rate."""
    return paired(*(c31.accuracies(runs("C31"), f"{name}-{one}") for one in (mode, "base")))


def main() -> None:
    """Write the numbers."""
    write_whole(NUMBERS_FILE, json.dumps(numbers(), indent=1) + "\n")


if __name__ == "__main__":
    main()
