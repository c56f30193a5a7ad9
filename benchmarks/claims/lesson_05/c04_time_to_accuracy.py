"""C04: do two workers reach an accuracy sooner than one, but end with a lower one?

One, two and four workers train with the same per-worker batch. They are compared after as many epochs as one worker
made, and after as many updates. If several workers were worse in themselves, they would end as low at equal updates as
at equal epochs.

There are two schedules. With the first, the rate is constant, and both moments are read from one run. With the second,
the rate falls to zero. It starts at twice the constant rate, so that the mean is the same. No difference is then hidden
by the noise of the last updates, which is smaller with a larger batch. Here each moment is the end of a separate run.
One worker after the time that several workers took is a separate run too. So is one worker that trains four times as
long. It sees every image as often as four workers do at equal updates. If it ends as high as they do, four workers
are not needed for such a result. But it makes four times as many updates, so it does not tell their gains by more
passes and by less noise apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import Difference, deviation, mean_std, paired
from benchmarks.experiment.plots import COLOURS, axes, counted
from benchmarks.instruments.simulated_workers import Recipe, train
from cifar.data import updates_per_epoch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (1, 2, 4)  # numbers of workers
# For each variant: the number of workers, and the updates as a share of those of one worker's full run.
CONSTANT = {f"workers-{size}": (size, 1) for size in SIZES}
FALLING = {
    "falling-1": (1, 1),
    "falling-1-half": (1, 1 / 2),
    "falling-1-quarter": (1, 1 / 4),
    "falling-2-epochs": (2, 1 / 2),
    "falling-2-updates": (2, 1),
    "falling-4-epochs": (4, 1 / 4),
    "falling-4-updates": (4, 1),
    "falling-1-fourfold": (1, 4),
}
# By number of workers: the run of one worker that takes the same time, if the exchange takes none.
SAME_TIME = {1: "falling-1", 2: "falling-1-half", 4: "falling-1-quarter"}
SCHEDULES = {"constant": "At a constant rate", "falling": "With a rate that falls to zero"}
MOST = 0.5  # most of a gap closes if more than this share of it closes


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the test accuracy (0 to 1) and the updates made after each epoch. The last epoch may be incomplete."""
    size, share = (CONSTANT | FALLING)[variant]
    split, test = data(settings)
    updates = round(share * settings["epochs"] * updates_per_epoch(len(split), settings["batch_size"], 1))
    epochs = settings["epochs"] * max(size, round(share))  # at least as many as the updates need
    recipe = Recipe(
        optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=settings["rate"], momentum=0.9),
        size=size, batch_size=settings["batch_size"], epochs=epochs, max_updates=updates,
        factor=lambda update, _: 2 * (1 - update / updates) if variant in FALLING else 1.0,
    )  # fmt: skip
    lines = train(recipe, (split, test), seed).epochs
    return {
        "size": size,
        "epochs": settings["epochs"],  # epochs of one worker's full run
        "updates": [line["updates"] for line in lines],
        "accuracy": [line["test_accuracy"] for line in lines],
    }


def ends(runs: Runs, schedule: str, size: int, equal: str) -> list[float]:
    """The test accuracy of `size` workers after as many epochs, or updates, as one worker made: one value per seed.

    `equal` is `epochs` or `updates`.
    """
    if schedule == "falling":
        return last(runs, f"falling-{size}-{equal}" if size > 1 else "falling-1")
    return [run["accuracy"][run["epochs"] - 1 if equal == "epochs" else -1] for run in runs[f"workers-{size}"]]


def last(runs: Runs, variant: str) -> list[float]:
    """The test accuracy at the end of a run, one value per seed."""
    return [run["accuracy"][-1] for run in runs[variant]]


def gap(runs: Runs, schedule: str, size: int, equal: str) -> Difference:
    """The accuracy of `size` workers minus that of one, at equal `epochs` or `updates`."""
    return paired(ends(runs, schedule, size, equal), ends(runs, schedule, 1, equal))


def longer(runs: Runs) -> Difference:
    """The accuracy of one worker that trains four times as long, minus that of four workers with as many images."""
    return paired(last(runs, "falling-1-fourfold"), last(runs, "falling-4-updates"))


def speedup(runs: Runs, size: int) -> list[float]:
    """How many times sooner than one worker `size` workers reach their accuracy at equal epochs, for each seed.

    The rate is constant. Time is counted in images per worker, so the exchange takes no time. One worker's accuracy is
    interpolated between epochs.
    """
    found = []
    for one, many in zip(runs["workers-1"], runs[f"workers-{size}"], strict=False):
        target, best = many["accuracy"][many["epochs"] - 1], np.maximum.accumulate([0.1, *one["accuracy"]])
        found.append(float(np.interp(target, best, range(len(best)))) / (many["epochs"] / size))
    return found


def ahead(runs: Runs, schedule: str, size: int) -> Difference:
    """A difference that is above zero if `size` workers are sooner.

    At the constant rate it is their speedup minus 1. With the falling rate it is their accuracy minus that of one
    worker whose run takes the same time.
    """
    if schedule == "falling":
        return paired(ends(runs, schedule, size, "epochs"), last(runs, SAME_TIME[size]))
    found = speedup(runs, size)
    return paired(found, [1] * len(found))


def judge(runs: Runs) -> Verdict:
    """The verdict on both parts of the claim, sooner and lower, for two workers.

    It depends if the two schedules disagree. A schedule that shows no difference does not disagree, because its runs
    may scatter too much.
    """
    found = {schedule: _judged(runs, schedule) for schedule in SCHEDULES}
    text = ". ".join(
        f"{name}: {found[schedule].sentence}; " + "; ".join(_sentence(runs, schedule, size) for size in SIZES[1:])
        for schedule, name in SCHEDULES.items()
    )
    words = {verdict.word for verdict in found.values()} - {"no difference seen"} or {"no difference seen"}
    return Verdict(words.pop(), f"{text}.") if len(words) == 1 else Verdict("depends", f"On the schedule. {text}.")


def _judged(runs: Runs, schedule: str) -> Verdict:
    """The verdict for two workers with one schedule. It depends if most of the gap closes at equal updates."""
    epochs, updates = (gap(runs, schedule, 2, equal) for equal in ("epochs", "updates"))
    sooner = ahead(runs, schedule, 2)
    if not epochs.seen:
        return Verdict("no difference seen", "two workers are not seen to end apart from one at equal epochs")
    if epochs.mean > 0:
        return Verdict("fails", "two workers end higher")
    if updates.mean > (1 - MOST) * epochs.mean:
        return Verdict("depends", "two workers end lower at equal epochs, but not, or hardly, at equal updates")
    if sooner.low > 0:
        return Verdict("holds", "two workers are sooner, and end lower, at equal updates too")
    if sooner.high < 0:
        return Verdict("fails", "two workers end lower, and are not sooner either")
    return Verdict("no difference seen", "two workers end lower; that they are sooner is not seen")


def _sentence(runs: Runs, schedule: str, size: int) -> str:
    epochs, updates = (gap(runs, schedule, size, equal).text(100, 1, " points") for equal in ("epochs", "updates"))
    text = f"{size} workers less one: {epochs} at equal epochs, {updates} at equal updates"
    if schedule == "falling":
        return f"{text}, {ahead(runs, schedule, size).text(100, 1, ' points')} in equal time"
    times = mean_std(speedup(runs, size), digits=1)
    return f"{text}; where they end at equal epochs they are {times} times as fast as one worker"


def picture(runs: Runs) -> Picture:
    """The picture shows where the runs with a falling rate end. The runs of a comparison stand together."""
    groups = {
        "equal epochs": ["falling-1", *(f"falling-{size}-epochs" for size in SIZES[1:])],
        "equal updates": ["falling-1", *(f"falling-{size}-updates" for size in SIZES[1:])],
        "equal images": ["falling-1-fourfold", "falling-4-updates"],
        **{f"equal time, {size}": [SAME_TIME[size], f"falling-{size}-epochs"] for size in SIZES[1:]},
    }
    return Picture(draw_ends(runs, groups, height=5.4), _alt(runs), _caption(runs))


def draw_ends(runs: Runs, groups: dict[str, list[str]], height: float) -> Figure:
    """Draw the accuracy at the end of some variants. Each group is named at the right. `height` is in inches."""
    figure, ax = axes("test accuracy (%)", "", size=(7.5, height))
    place, ticks = 0.0, {}
    for group, variants in groups.items():
        for variant in variants:
            size, found = FALLING[variant][0], [100 * accuracy for accuracy in last(runs, variant)]
            error, colour = deviation(found) if len(found) > 1 else None, COLOURS[SIZES.index(size)]
            ax.errorbar(np.mean(found), place, xerr=error, fmt="o", color=colour, markersize=8, capsize=3)
            ax.text(np.mean(found), place - 0.3, f"{np.mean(found):.1f}", ha="center", fontsize=9, color=colour)
            ticks[place] = f"{counted(size, 'worker')}, {runs[variant][0]['updates'][-1]:,} updates"
            place += 1
        middle = place - (len(variants) + 1) / 2
        ax.text(1.02, middle, group, va="center", transform=ax.get_yaxis_transform())
        place += 0.5
    ax.set_yticks(list(ticks), list(ticks.values()))
    ax.margins(x=0.1, y=0.12 if len(ticks) > 4 else 0.3)
    ax.invert_yaxis()
    return figure


def _alt(runs: Runs) -> str:
    falling = "; ".join(
        f"{size}: {mean_std(ends(runs, 'falling', size, 'epochs'), 100, 1)} and "
        f"{mean_std(ends(runs, 'falling', size, 'updates'), 100, 1)} %"
        for size in SIZES
    )
    one = " and ".join(mean_std(last(runs, SAME_TIME[size]), 100, 1) for size in SIZES[1:])
    return (
        "Points for the ends of runs of 1, 2 and 4 workers whose rate falls to zero. Accuracy at equal epochs and at "
        f"equal updates, by workers: {falling}. One worker in the time of 2 and of 4 workers: {one} %. One worker that "
        f"trains four times as long: {mean_std(last(runs, 'falling-1-fourfold'), 100, 1)} %."
    )


def _caption(runs: Runs) -> str:
    by = {
        equal: " and ".join(f"{100 * gap(runs, 'falling', size, equal).mean:+.1f}" for size in SIZES[1:])
        for equal in ("epochs", "updates")
    }
    return (
        f"Where runs end. With equal epochs, 2 and 4 workers end {by['epochs']} points from one worker, and with equal "
        f"updates {by['updates']} points. Equal images: one worker that sees as many images as 4 workers at equal "
        "updates. Equal time: one worker in the time that 2 or 4 workers need for equal epochs. Mean of "
        f"{counted(len(runs['falling-1']), 'seed')}, bars: one standard deviation."
    )


CLAIM = Claim(
    id="C04",
    statement="Two GPUs reach 84 % sooner, but end lower than one GPU's 86 %.",
    source="S0",
    lesson="05_why_it_converges_worse",
    variants=(*CONSTANT, *FALLING),
    seeds=5,
    settings={"images": 10_240, "epochs": 5, "batch_size": 64, "rate": 0.01, "test_images": 5000},
    quick={"images": 768, "epochs": 2, "batch_size": 32, "test_images": 500},
    run=run,
    judge=judge,
    picture=picture,
    caution="One seed has no interval, and after a few dozen updates accuracy still jumps from epoch to epoch.",
)
