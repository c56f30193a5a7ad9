"""C06: should the learning rate decay by epoch, not by step?

The rate halves every `every` epochs. A schedule by epoch counts the updates that all workers together make in an epoch.
A schedule by step was written for one worker, and counts that worker's updates. Four workers with the same per-worker
batch make a quarter of the updates per epoch. With the second schedule their rate therefore decays four times later.
The rate is read from the runs. The decay starts from the base rate, and from the rate scaled by the number of workers.
"""

import numpy as np
import torch

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import Difference, deviation, mean_std, paired
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments.simulated_workers import Recipe, train
from cifar.data import updates_per_epoch

VARIANTS = {  # number of workers, factor of the base rate, and whether the schedule counts one worker's updates
    "one": (1, 1, False),
    "base-by-epoch": (4, 1, False),
    "base-by-step": (4, 1, True),
    "scaled-by-epoch": (4, 4, False),
    "scaled-by-step": (4, 4, True),
}
STARTS = {"base": "the base rate", "scaled": "the scaled rate"}


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the rate and the test accuracy (0 to 1) of each epoch."""
    size, scale, by_step = VARIANTS[variant]
    split, test = data(settings)
    of_one_worker = updates_per_epoch(len(split), settings["batch_size"], 1)

    def factor(update: int, updates_an_epoch: int) -> float:
        epoch = update // (of_one_worker if by_step else updates_an_epoch)
        return scale * 0.5 ** (epoch // settings["every"])

    recipe = Recipe(
        optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=settings["rate"], momentum=0.9),
        size=size, batch_size=settings["batch_size"], epochs=settings["epochs"], factor=factor,
    )  # fmt: skip
    lines = train(recipe, (split, test), seed).epochs
    return {"rate": [line["lr"] for line in lines], "accuracy": [line["test_accuracy"] for line in lines]}


def first_decay(run: Values) -> int | None:
    """The number of epochs before the first one that ends with a smaller rate; None if there is none."""
    return next((number for number, rate in enumerate(run["rate"]) if rate < run["rate"][0]), None)


def last_accuracy(runs: Runs, variant: str) -> list[float]:
    """The test accuracy after the last epoch, one value per seed."""
    return [run["accuracy"][-1] for run in runs[variant]]


def gain(runs: Runs, start: str) -> Difference:
    """The accuracy with the schedule by epoch minus that with the schedule by step."""
    return paired(last_accuracy(runs, f"{start}-by-epoch"), last_accuracy(runs, f"{start}-by-step"))


def judge(runs: Runs) -> Verdict:
    """The claim is advice. It holds if following it raises accuracy beyond the noise, from both starting rates."""
    found = {start: gain(runs, start) for start in STARTS}
    better = [start for start, gained in found.items() if gained.seen and gained.mean > 0]
    worse = [start for start, gained in found.items() if gained.seen and gained.mean < 0]
    by_start = "; ".join(f"{gained.text(100, unit=' points')} from {STARTS[start]}" for start, gained in found.items())
    text = f"{_lateness(runs)} By epoch instead of by step, four workers gain {by_start}."
    if len(better) == len(found):
        return Verdict("holds", text)
    if len(worse) == len(found):
        return Verdict("fails", text)
    if better or worse:
        return Verdict("depends", f"On the rate from which it decays. {text}")
    return Verdict("no difference seen", text)


def _lateness(runs: Runs) -> str:
    one, many = first_decay(runs["one"][0]), first_decay(runs["scaled-by-step"][0])
    late = f"{many / one:g} times later" if one and many else "never" if one else "as late"
    rates = [runs[f"scaled-{key}"][0]["rate"][-1] for key in ("by-step", "by-epoch")]
    return (
        f"By step, the first decay comes {late} in epochs with four workers than with one. The last epoch's rate is "
        f"{rates[0] / rates[1]:g} times that of the schedule by epoch."
    )


def picture(runs: Runs) -> Picture:
    """The picture shows the rate that the runs used (left) and the test accuracy (right), both by epoch."""
    figure, (left, right) = panels(("epoch", "rate, relative to its start"), ("epoch", "test accuracy (%)"))
    names = {
        "one": "1 worker", "base-by-epoch": "4, base, by epoch", "base-by-step": "4, base, by step",
        "scaled-by-epoch": "4, scaled, by epoch", "scaled-by-step": "4, scaled, by step",
    }  # fmt: skip
    for variant in ("one", "scaled-by-epoch", "scaled-by-step"):
        rate = np.array(runs[variant][0]["rate"])
        left.step(np.arange(len(rate)) + 1, rate / rate[0], where="mid", label=names[variant].replace(" scaled,", ""))
    for variant, name in names.items():
        accuracy = 100 * np.array([run["accuracy"] for run in runs[variant]])
        epochs = np.arange(accuracy.shape[1]) + 1
        (line,) = right.plot(epochs, accuracy.mean(0), label=name)
        low, high = accuracy.mean(0) - deviation(accuracy), accuracy.mean(0) + deviation(accuracy)
        right.fill_between(epochs, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
    left.set_yscale("log", base=2)
    left.legend()
    right.legend(fontsize=8)
    return Picture(figure, _alt(runs), _caption(runs))


def _alt(runs: Runs) -> str:
    ends = ", ".join(f"{variant} {mean_std(last_accuracy(runs, variant), 100, 1)} %" for variant in VARIANTS)
    return (
        "Left: the rate by epoch falls in equal stairs for one worker and for four workers by epoch, and in stairs "
        f"four times as wide for four workers by step. Right: test accuracy by epoch; at the end: {ends}."
    )


def _caption(runs: Runs) -> str:
    seeds = len(runs["one"])
    return f"{_lateness(runs)} Right: test accuracy (mean of {counted(seeds, 'seed')}, band: one standard deviation)."


CLAIM = Claim(
    id="C06",
    statement="Decay the learning rate by epoch, not by step.",
    source="S0",
    lesson="15_lab_of_lesson_05",
    variants=tuple(VARIANTS),
    seeds=5,
    settings={"images": 10_240, "epochs": 6, "every": 1, "batch_size": 64, "rate": 0.02, "test_images": 4000},
    quick={"images": 512, "epochs": 5, "test_images": 200},
    run=run,
    judge=judge,
    picture=picture,
    caution="The rates are the same in a small run; accuracy after so few updates is mostly chance.",
)
