"""C25: should one shuffle be divided among the workers, or should each worker draw its own images?

Real processes go through an epoch of CIFAR-10. `Split.batch` raises an audit event, which shows the images used. Three
orders are compared: shards of one shuffle, the first part of each worker's own shuffle, and images drawn with
replacement. Then the same three orders train the lessons' ResNet, which shows whether the order changes the test
accuracy.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.experiment import dataset
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import deviation, mean_std, paired
from benchmarks.experiment.plots import COLOURS, axes
from benchmarks.instruments.gloo_processes import data, on_peers
from benchmarks.instruments.simulated_workers import Recipe, train
from cifar.data import Split, batches, shard, shuffle

Order = Callable[[int, int, int, int, int], Tensor]  # (images, seed, epoch, rank, size) -> this worker's indices
CLOSE = 0.02  # share of the images: with 4,096 images or more, coverage differs by less from draw to draw


def one_shuffle(count: int, seed: int, epoch: int, rank: int, size: int) -> Tensor:
    """A shard of the shuffle that all workers share."""
    return shard(shuffle(count, seed, epoch), rank, size)


def own_shuffle(count: int, seed: int, epoch: int, rank: int, size: int) -> Tensor:
    """The first part of this worker's own shuffle."""
    return shuffle(count, seed + 1000 * (rank + 1), epoch)[: count // size]


def draws(count: int, seed: int, epoch: int, rank: int, size: int) -> Tensor:
    """Images drawn with replacement: each draw is from all images."""
    generator = torch.Generator().manual_seed((seed * 1000 + epoch) * 1000 + rank)
    return torch.randint(count, (count // size,), generator=generator)


ORDERS: dict[str, Order] = {"one shuffle": one_shuffle, "own shuffles": own_shuffle, "with replacement": draws}


def sizes(most: int) -> list[int]:
    """The powers of two from 1 up to `most`."""
    return [2**power for power in range(most.bit_length()) if 2**power <= most]


def expected(variant: str, size: int) -> float:
    """The share of the images that an epoch uses, in the limit of many images."""
    return {"one shuffle": 1.0, "own shuffles": 1 - (1 - 1 / size) ** size, "with replacement": 1 - 1 / math.e}[variant]


def epochs(images: int, batch_size: int, seed: int) -> dict[str, list[list[int]]]:
    """Measure on each process how many images all workers together used 0, 1, 2, ... times.

    The result has one such list for each order and number of workers.
    """
    split, used = data(images), []
    sys.addaudithook(lambda event, given: used.append(given[1]) if event == "cifar.batch" else None)
    found = {variant: [] for variant in ORDERS}
    for variant, order in ORDERS.items():
        for size in sizes(dist.get_world_size()):
            used.clear()
            if dist.get_rank() < size:
                _epoch(split, order(len(split), seed, 0, dist.get_rank(), size), batch_size)
            found[variant].append(_times(used, len(split)))
    return found


def _epoch(split: Split, order: Tensor, batch_size: int) -> None:
    """Fetch each batch as training does."""
    for _ in batches(split, order, batch_size):
        pass


def _times(used: list[Tensor], count: int) -> list[int]:
    """How many of `count` images all workers together used 0, 1, 2, ... times.

    `used` holds the indices that this worker has used.
    """
    counts = torch.bincount(torch.cat([torch.empty(0, dtype=torch.int64), *used]), minlength=count)
    dist.all_reduce(counts)
    return torch.bincount(counts).tolist()


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure the coverage for 1, 2, 4, ... workers in one launch, and then the test accuracies."""
    options = {name: settings[name] for name in ("images", "batch_size")}
    used = on_peers(f"{__name__}:epochs", settings["workers"], seed=seed, **options)[0]
    values = {variant: {"sizes": sizes(settings["workers"]), "used": used[variant]} for variant in ORDERS}
    for variant in ORDERS if settings["epochs"] else ():
        values[variant]["test_accuracy"] = accuracy(variant, seed, settings)
    return values


def accuracy(variant: str, seed: int, settings: Settings) -> float:
    """The test accuracy (0 to 1) after training in this order."""
    parts, size = dataset.data(settings), settings["trained_workers"]
    recipe = Recipe(
        size=size, batch_size=settings["batch_size"], epochs=settings["epochs"],
        order=lambda epoch, rank: ORDERS[variant](len(parts[0]), seed, epoch, rank, size),
    )  # fmt: skip
    return train(recipe, parts, seed).last["test_accuracy"]


def coverage(run: Values) -> list[float]:
    """The share of the images that was used (0 to 1), for each number of workers."""
    return [1 - counts[0] / sum(counts) for counts in run["used"]]


def judge(runs: Runs) -> Verdict:
    """The claim holds if one shuffle uses every image and draws with replacement do not."""
    size = runs["one shuffle"][0]["sizes"][-1]
    covered = {variant: [coverage(run)[-1] for run in runs[variant]] for variant in ORDERS}
    listed = ", ".join(
        f"{mean_std(covered[variant], 100)} % ({variant}; theory {100 * expected(variant, size):.1f} %)"
        for variant in ORDERS
    )
    text = f"{size} workers use {listed} of the images in an epoch. {_accuracy(runs)}".strip()
    full = min(covered["one shuffle"]) > 1 - CLOSE
    if full and max(covered["with replacement"]) < 1 - CLOSE:
        return Verdict("holds", text)
    return Verdict("no difference seen" if full else "fails", text)


def _accuracy(runs: Runs) -> str:
    if not all("test_accuracy" in run for variant in ORDERS for run in runs[variant]):
        return ""
    reached = {variant: [run["test_accuracy"] for run in runs[variant]] for variant in ORDERS}
    gain = paired(reached["one shuffle"], reached["with replacement"])
    seen = "" if gain.seen else ": no difference seen"
    return f"Test accuracy of one shuffle over images drawn with replacement: {gain.text(100, 2, ' points')}{seen}."


def picture(runs: Runs) -> Picture:
    """The picture shows the coverage against the number of workers, with the theory."""
    figure, ax = axes("workers", "images used in an epoch (%)")
    for place, (variant, found) in enumerate(runs.items()):
        numbers, shares = found[0]["sizes"], 100 * np.array([coverage(run) for run in found])
        ax.errorbar(
            numbers, shares.mean(0), deviation(shares), fmt="osD"[place], color=COLOURS[place], capsize=3, label=variant
        )
        ax.plot(
            numbers, [100 * expected(variant, size) for size in numbers], "-", marker="", color=COLOURS[place], lw=1
        )
    ax.set(xscale="log", xticks=numbers, xticklabels=numbers, ylim=(50, 103))
    ax.minorticks_off()
    ax.legend(loc="center right")
    last = {variant: 100 * np.mean([coverage(run)[-1] for run in found]) for variant, found in runs.items()}
    listed = ", ".join(f"{share:.1f} % ({variant})" for variant, share in last.items())
    return Picture(
        figure,
        f"Plot of the share of images used in an epoch against the number of workers; with {numbers[-1]}: {listed}.",
        f"With {numbers[-1]} workers: {listed}. Points: counted; lines: 100 %, 1 - (1 - 1/K)^K and 1 - 1/e.",
    )


CLAIM = Claim(
    id="C25",
    statement="Divide one shuffle among the workers, so that an epoch uses every image.",
    source="S3",
    lesson="13_lab_of_lesson_03",
    variants=tuple(ORDERS),
    seeds=5,
    settings={"workers": 8, "images": 10_000, "batch_size": 128, "epochs": 6, "trained_workers": 4},
    quick={"workers": 4, "images": 4096, "epochs": 0},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="The live run counts the images of one epoch and trains nothing.",
)
