"""What do ways that send fewer bytes cost in accuracy, and what do they gain in time?

Four real Horovod workers train ResNet-9 in each way, with the same images and the same learning rate. The accuracy
after an epoch does not depend on the link. The seconds of an epoch do. They come from the comparison `links`, for four
workers on two hosts with the same batch.
"""

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import Difference, mean_std, paired
from benchmarks.experiment.plots import axes
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.speed.tables import Table

WORKERS, BATCH = 4, 16  # images per worker
EXACT = "group"
WAYS = {
    EXACT: "one group",
    "fp16": "one group, float16",
    "powersgd": "DDP with PowerSGD",
    "topk": "the largest 1 %",
    "local": "8 local updates",
    "diloco": "8 local updates, DiLoCo",
}
PASSES = dict.fromkeys(WAYS, 1) | {"local": 8, "diloco": 8}  # batches between two exchanges
RATE = 0.02  # learning rate of all ways
COSTS = 0.01  # A loss of test accuracy (0 to 1) that is smaller than this counts as none.


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Train in one way. Returns the test accuracy (0 to 1) after each epoch."""
    options = {name: settings[name] for name in ("images", "test_images", "epochs")}
    task = "benchmarks.speed.exchange_ways:accuracies"
    work = {"batch_size": BATCH, "rate": RATE, "seed": seed}
    found = on_workers(task, WORKERS, way=variant, passes=PASSES[variant], **work, **options)
    return {"test_accuracy": found[0]}


def accuracies(runs: Runs, way: str) -> np.ndarray:
    """The test accuracy after each epoch, of shape (seeds, epochs)."""
    return np.array([values["test_accuracy"] for values in runs[way]])


def cost(runs: Runs, way: str) -> Difference:
    """The accuracy after the last epoch, minus that of the exact way with the same seeds."""
    return paired(accuracies(runs, way)[:, -1], accuracies(runs, EXACT)[:, -1])


def after(runs: Runs, way: str, epoch_seconds: float, seconds: float) -> np.ndarray:
    """The accuracy of each seed after some seconds, if an epoch takes `epoch_seconds`.

    Between two epochs it is taken to be a straight line, which begins with one image of ten. Returns NaN where the way
    has been trained for a shorter time.
    """
    found = accuracies(runs, way)
    ends = epoch_seconds * np.arange(found.shape[1] + 1)
    return np.array([np.interp(seconds, ends, [0.1, *of_seed], right=np.nan) for of_seed in found])


def table(runs: Runs) -> Table:
    """The table has a row for each way: the accuracy after the last epoch, and the difference to the exact way."""
    rows = []
    for way, name in WAYS.items():
        difference = "" if way == EXACT else cost(runs, way).text(100, 1, " points")
        rows.append((name, f"{mean_std(accuracies(runs, way)[:, -1], 100, 1)} %", difference))
    return Table(("way", "test accuracy, last epoch", "difference to one group"), rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if every way's interval excludes a loss of COSTS. It fails if an interval lies below zero."""
    found = {name: cost(runs, way) for way, name in WAYS.items() if way != EXACT}
    told = "; ".join(f"{name} {one.text(100, 1, ' points')}" for name, one in found.items())
    if all(one.low > -COSTS for one in found.values()):
        word = "holds"
    elif all(one.high < 0 for one in found.values()):
        word = "fails"
    else:
        word = "depends" if any(one.high < 0 for one in found.values()) else "no difference seen"
    return Verdict(word, f"Test accuracy minus that of one group: {told}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the accuracy of each way over the epochs."""
    figure, ax = axes("epochs", "test accuracy (%)")
    for way, name in WAYS.items():
        found = 100 * accuracies(runs, way)
        epochs = np.arange(1, found.shape[1] + 1)
        ax.plot(epochs, found.mean(0), label=name)
        ax.fill_between(epochs, found.min(0), found.max(0), alpha=0.15)
    ax.legend(fontsize=8)
    last = ", ".join(f"{name} {accuracies(runs, way)[:, -1].mean():.0%}" for way, name in WAYS.items())
    return Picture(
        figure,
        f"Test accuracy over epochs, a line for each way. After the last epoch: {last}.",
        f"Test accuracy, mean and range over the seeds. After the last epoch: {last}.",
    )


CLAIM = Claim(
    id="savings",
    statement="Workers that send fewer bytes lose no accuracy in the same number of epochs.",
    source="",
    lesson="10_what_comes_next",
    variants=tuple(WAYS),
    seeds=5,
    settings={"images": 8192, "test_images": 2000, "epochs": 6},
    quick={"images": 512, "test_images": 200, "epochs": 1},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few images teach a network nothing.",
)
