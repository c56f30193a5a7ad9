"""C04: do two workers train sooner but end lower than one?

One, two and four workers train with the same per-worker batch and the same rate, each until it has made as many updates
as one worker. Each run is read twice: after as many epochs as one worker made, and after as many updates. If several
workers were worse in themselves, they would end as low at equal updates as at equal epochs.
"""

import numpy as np
import torch

from benchmarks.cifar10 import data
from benchmarks.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.plots import panels
from benchmarks.spread import Difference, mean_std, paired
from benchmarks.training import Recipe, train
from cifar.data import updates_per_epoch

SIZES = (1, 2, 4)
MOST = 0.5  # "most of the gap closes": more than half of it


def run(arm: str, seed: int, settings: Settings) -> Values:
    """Test accuracy after each epoch, until `size` workers have made as many updates as one worker in `epochs`."""
    size, batch = _size(arm), settings["batch_size"]
    split, test = data(settings)
    recipe = Recipe(
        optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=settings["rate"], momentum=0.9),
        size=size, batch_size=batch, epochs=settings["epochs"] * size,
        max_updates=settings["epochs"] * updates_per_epoch(len(split), batch, 1),
    )  # fmt: skip
    lines = train(recipe, (split, test), seed).epochs
    return {
        "size": size,
        "epochs": settings["epochs"],  # of one worker
        "updates": [line["updates"] for line in lines],
        "accuracy": [line["test_accuracy"] for line in lines],
    }


def arm_of(size: int) -> str:
    """The arm's name."""
    return f"workers-{size}"


def _size(arm: str) -> int:
    return int(arm.removeprefix("workers-"))


def equal_epochs(runs: Runs, size: int) -> list[float]:
    """Test accuracy of `size` workers after as many epochs as one worker made, by seed."""
    return [run["accuracy"][run["epochs"] - 1] for run in runs[arm_of(size)]]


def equal_updates(runs: Runs, size: int) -> list[float]:
    """Test accuracy of `size` workers after as many updates as one worker made, by seed."""
    return [run["accuracy"][-1] for run in runs[arm_of(size)]]


def gaps(runs: Runs, size: int) -> tuple[Difference, Difference]:
    """Accuracy of `size` workers less that of one, at equal epochs and at equal updates."""
    one = equal_epochs(runs, 1)
    return paired(equal_epochs(runs, size), one), paired(equal_updates(runs, size), one)


def speedup(runs: Runs, size: int) -> list[float]:
    """How many times sooner `size` workers reach what they end with at equal epochs than one worker does, by seed.

    Time is counted in images a worker uses, so exchange is free; one worker's accuracy is interpolated between epochs.
    """
    found = []
    for one, many in zip(runs[arm_of(1)], runs[arm_of(size)], strict=False):
        target, best = many["accuracy"][many["epochs"] - 1], np.maximum.accumulate([0.1, *one["accuracy"]])
        found.append(float(np.interp(target, best, range(len(best)))) / (many["epochs"] / size))
    return found


def sooner(runs: Runs, size: int) -> Difference:
    """How far the speedup lies above 1, over the seeds."""
    found = speedup(runs, size)
    return paired(found, [1] * len(found))


def judge(runs: Runs) -> Verdict:
    """Both halves, sooner and lower; and it depends on what is kept equal where most of the gap closes."""
    epochs, updates = gaps(runs, 2)
    text = "; ".join(_sentence(runs, size) for size in SIZES[1:])
    if not epochs.seen:
        return Verdict("no difference seen", f"At equal epochs two workers are not seen to end apart from one. {text}.")
    if epochs.mean > 0:
        return Verdict("fails", f"Two workers end higher. {text}.")
    if updates.mean > (1 - MOST) * epochs.mean:
        return Verdict("depends", f"On what is kept equal, epochs or updates. {text}.")
    if sooner(runs, 2).low > 0:
        return Verdict("holds", f"Two workers are sooner, and end lower, at equal updates too. {text}.")
    if sooner(runs, 2).high < 0:
        return Verdict("fails", f"Two workers end lower, and are not sooner either. {text}.")
    return Verdict("no difference seen", f"Two workers end lower; that they are sooner is not seen. {text}.")


def _sentence(runs: Runs, size: int) -> str:
    epochs, updates = gaps(runs, size)
    return (
        f"{size} workers less one: {epochs.text(100, unit=' points')} at equal epochs, "
        f"{updates.text(100, unit=' points')} at equal updates; were exchange free, they would reach the accuracy "
        f"where they end at equal epochs {mean_std(speedup(runs, size), digits=1)} times as fast as one worker"
    )


def picture(runs: Runs) -> Picture:
    """The same runs twice: test accuracy against epochs, and against updates."""
    figure, (left, right) = panels(("epochs", "test accuracy (%)"), ("updates", "test accuracy (%)"))
    for size in SIZES:
        values = runs[arm_of(size)]
        accuracies = 100 * np.array([run["accuracy"] for run in values])
        mean, spread = accuracies.mean(0), accuracies.std(0)
        for ax, x in ((left, np.arange(len(mean)) + 1), (right, np.array(values[0]["updates"]))):
            (line,) = ax.plot(x, mean, label=f"{size} worker{'s' * (size > 1)}")
            ax.fill_between(x, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, linewidth=0)
    left.axvline(runs[arm_of(1)][0]["epochs"], color="grey", linewidth=0.8)
    left.legend()
    return Picture(figure, _alt(runs), _caption(runs))


def _alt(runs: Runs) -> str:
    ends = ", ".join(f"{mean_std(equal_epochs(runs, size), 100, 1)} % for {size}" for size in SIZES)
    return (
        "Two line plots of the same runs of 1, 2 and 4 workers. Against epochs, at the grey line, "
        f"they stand at {ends}. Against updates they end at "
        + ", ".join(f"{mean_std(equal_updates(runs, size), 100, 1)} % for {size}" for size in SIZES)
        + "."
    )


def _caption(runs: Runs) -> str:
    by = [f"{gaps(runs, size)[0].mean * 100:+.1f} / {gaps(runs, size)[1].mean * 100:+.1f}" for size in SIZES[1:]]
    return (
        "Left: test accuracy by epochs; the grey line is where one worker stops. Right: the same runs by updates. "
        f"Against one worker, at equal epochs / at equal updates: 2 workers {by[0]}, 4 workers {by[1]} points "
        f"(mean of {len(runs[arm_of(1)])} seed(s), band: one standard deviation)."
    )


CLAIM = Claim(
    id="C04",
    statement="Two GPUs reach 84 % sooner, but end lower than one GPU's 86 %.",
    source="S0",
    lesson="05_why_it_converges_worse",
    arms=tuple(arm_of(size) for size in SIZES),
    seeds=5,
    settings={"images": 10_240, "epochs": 5, "batch_size": 64, "rate": 0.01, "test_images": 5000},
    quick={"images": 1024, "epochs": 2, "batch_size": 32, "test_images": 500},
    run=run,
    judge=judge,
    picture=picture,
    caution="One seed has no interval, and after a few dozen updates accuracy still jumps from epoch to epoch.",
)
