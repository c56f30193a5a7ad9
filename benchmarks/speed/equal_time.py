"""What ways that send fewer bytes cost in accuracy, and what they gain in time on each link.

The accuracies come from the comparison `savings`, and the seconds from the comparison `links`: both have four workers
with the same batch.
"""

import numpy as np

from benchmarks.cost_models.ring_all_reduce import traffic
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.intervals import mean_std
from benchmarks.speed.comparisons import links, savings
from benchmarks.speed.tables import Table

LAYOUT = "2x2"  # two hosts with two workers each
SAME_SPEED = {"diloco": "local"}  # DiLoCo also averages weights once in 8 updates, and makes one cheap step more


def sent(way: str) -> float:
    """The bytes that each of the workers sends for a batch, the mean over all batches."""
    size = links.handed_over(SAME_SPEED.get(way, way))
    if way == "topk":
        return (savings.WORKERS - 1) * size
    return traffic(savings.WORKERS, size)[1] / savings.PASSES[way]


def epoch_seconds(runs: Runs, rate: str, way: str) -> float:
    """The seconds of an epoch of `savings` over links of this rate. `runs` are those of the comparison `links`."""
    name = SAME_SPEED.get(way, way)
    images_per_s = np.median(links.speeds(runs, f"{LAYOUT}-{rate}-{savings.BATCH}", name))
    return savings.CLAIM.settings["images"] / float(images_per_s)


def equal_seconds(runs: Runs, rate: str, epochs: int) -> float:
    """The seconds in which the fastest way trains for all epochs. All ways get so much time."""
    return epochs * min(epoch_seconds(runs, rate, way) for way in savings.WAYS)


def accuracies(trained: Runs, timed: Runs, rate: str, way: str) -> np.ndarray:
    """The test accuracy of each seed when the fastest way has trained for all epochs."""
    epochs = savings.accuracies(trained, way).shape[1]
    seconds = equal_seconds(timed, rate, epochs)
    return savings.after(trained, way, epoch_seconds(timed, rate, way), seconds)


def costs(trained: Runs) -> Table:
    """The table has a row for each way: what a worker sends, and the accuracy after all epochs."""
    rows = [
        (name, f"{sent(way) / 1e6:.2f} MB", *rest)
        for (way, name), (_, *rest) in zip(savings.WAYS.items(), savings.table(trained).rows, strict=True)
    ]
    return Table(("way", "sent for each batch", *savings.table(trained).heads[1:]), rows)


def after_equal_time(trained: Runs, timed: Runs) -> Table:
    """The table has a row for each way, and a column for each rate of the links: the accuracy after equal time."""
    epochs = savings.accuracies(trained, savings.EXACT).shape[1]
    heads = [f"{links.in_words(rate)}, {equal_seconds(timed, rate, epochs):.0f} s" for rate in links.RATES]
    rows = [
        (name, *(f"{mean_std(accuracies(trained, timed, rate, way), 100, 1)} %" for rate in links.RATES))
        for way, name in savings.WAYS.items()
    ]
    return Table(("way", *heads), rows)
