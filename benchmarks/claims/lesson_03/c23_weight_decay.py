"""C23: should k workers with n images each divide their loss by n or by kn, and where should weight decay be added?

Real processes sum the gradients of their losses. Each loss is that of n images, divided by n or by kn. Weight decay is
part of every worker's loss, or it is added once, after the sum. The summed gradient consists of two terms: the gradient
of one worker with all kn images, and that of the decay. The experiment measures how many times each term is contained.
Then each of the four combinations trains.
"""

import math
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import panels
from benchmarks.instruments.gloo_processes import data, on_peers
from benchmarks.methods.communication_patterns import each_size, sizes
from cifar.data import Split, normalise, shard, shuffle

# For each combination: whether the loss is divided by kn, and whether the decay is inside the loss.
SUMS = {
    "n, inside": (False, True),
    "n, outside": (False, False),
    "kn, inside": (True, True),
    "kn, outside": (True, False),
}
RATE, DECAY = 0.5, 0.01  # learning rate and weight decay; the decay is strong, so that few updates show it
CLOSE = 0.01  # relative difference: the terms are exact except for rounding

Batch = tuple[Tensor, Tensor]  # pixels (B, 3072) and labels (B,)


def images(split: Split, indices: Tensor) -> Batch:
    """The images at `indices` as float64 pixels `(B, 3072)`, and their labels.

    The pixels of each image form a vector of length about 1.
    """
    pixels, labels = split.batch(indices)
    return normalise(pixels).flatten(1).double() / math.sqrt(3072), labels


def data_gradient(weights: Tensor, batch: Batch) -> Tensor:
    """The gradient, `(10, 3072)`, of the summed cross-entropy of a linear classifier with weights `(10, 3072)`."""
    pixels, labels = batch
    return (F.softmax(pixels @ weights.T, 1) - F.one_hot(labels, 10)).T @ pixels


def summed(weights: Tensor, batch: Batch, by_all: bool, inside: bool, group: dist.ProcessGroup) -> Tensor:
    """The gradient that the workers use: the sum of their losses' gradients, plus the decay if it is outside.

    `by_all` says whether the loss is divided by kn, and `inside` whether the decay is part of the loss.
    """
    count = len(batch[1]) * (group.size() if by_all else 1)
    mine = data_gradient(weights, batch) / count
    if inside:
        mine += DECAY * weights
    dist.all_reduce(mine, group=group)
    return mine if inside else mine + DECAY * weights


def terms(found: Tensor, data: Tensor, decay: Tensor) -> list[float]:
    """How many times `data` and `decay` are contained in `found`, by least squares, and the relative remainder."""
    both = torch.stack([data.flatten(), decay.flatten()], 1)
    times = torch.linalg.lstsq(both, found.flatten()[:, None]).solution
    return [*times.flatten().tolist(), ((both @ times).flatten() - found.flatten()).norm().item() / found.norm().item()]


def measure(batch_size: int, updates: int, images: int, seed: int) -> dict:
    """Measure on each process the terms for each number of workers, and the weights' length with all workers."""
    split = data(images)
    weights = torch.randn(10, 3072, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.01
    found = each_size(partial(_terms, weights, split, batch_size, seed))
    norms = {name: _norms(weights, split, batch_size, updates, seed, sum) for name, sum in SUMS.items()}
    return {"terms": found, "norms": norms, "one worker": _alone(weights, split, batch_size, updates, seed)}


def _batches(split: Split, batch_size: int, seed: int, update: int, rank: int, size: int) -> Batch:
    return images(split, shard(shuffle(len(split), seed, update)[: batch_size * size], rank, size))


def _terms(weights: Tensor, split: Split, batch_size: int, seed: int, group: dist.ProcessGroup) -> dict:
    size = group.size()
    mine = _batches(split, batch_size, seed, 0, group.rank(), size)
    all = _batches(split, batch_size * size, seed, 0, 0, 1)
    data = data_gradient(weights, all) / len(all[1])
    return {name: terms(summed(weights, mine, *sum, group), data, DECAY * weights) for name, sum in SUMS.items()}


def _norms(start: Tensor, split: Split, batch_size: int, updates: int, seed: int, sum: tuple[bool, bool]) -> list:
    """The length of the weights after each update of all workers."""
    weights, group, norms = start.clone(), dist.group.WORLD, []
    for update in range(updates):
        mine = _batches(split, batch_size, seed, update, group.rank(), group.size())
        weights -= RATE * summed(weights, mine, *sum, group)
        norms.append(weights.norm().item())
    return norms


def _alone(start: Tensor, split: Split, batch_size: int, updates: int, seed: int) -> list:
    """The length of the weights after each update of one worker with all images; empty except on rank 0."""
    weights, norms = start.clone(), []
    for update in range(updates if dist.get_rank() == 0 else 0):
        all = _batches(split, batch_size * dist.get_world_size(), seed, update, 0, 1)
        weights -= RATE * (data_gradient(weights, all) / len(all[1]) + DECAY * weights)
        norms.append(weights.norm().item())
    return norms


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the terms for 2, 4, ... workers, and the lengths for the largest number of workers.

    The experiment always runs on the CPU, whatever the setting `device` says, because its result is algebra.
    """
    given = {name: settings[name] for name in ("batch_size", "updates", "images")}
    first = on_peers(f"{__name__}:measure", settings["workers"], seed=seed, **given)[0]
    return {"sizes": sizes(settings["workers"]), **first}


def times(runs: Runs, name: str) -> tuple[float, float]:
    """How many times the data term and the decay are contained with most workers, averaged over all runs."""
    found = np.mean([run["terms"][-1][name] for run in runs["sums"]], 0)
    return float(found[0]), float(found[1])


def judge(runs: Runs) -> Verdict:
    """The claim holds if dividing by n, and nothing else, makes the decay K times too strong."""
    size = runs["sums"][0]["sizes"][-1]
    found = {name: times(runs, name) for name in SUMS}
    strong = {name for name, (_, decay) in found.items() if math.isclose(decay, size, rel_tol=CLOSE)}
    listed = "; ".join(
        f"divided by {name}: data {data:.2f}, decay {decay:.2f}" for name, (data, decay) in found.items()
    )
    text = f"times that each term is there with {size} workers, their losses summed: {listed}"
    if strong == {"n, inside", "n, outside"}:
        return Verdict("holds", f"{text}.")
    if not strong:
        return Verdict("fails", f"{text}. The decay is nowhere {size} times too strong.")
    return Verdict(
        "depends", f"{text}. The decay is {size} times too strong for {_listed(strong)}: that depends on {_on(strong)}."
    )


def _listed(names: set[str]) -> str:
    return " and ".join(f"'{name}'" for name in SUMS if name in names)


def _on(strong: set[str]) -> str:
    if strong == {"n, inside", "kn, inside"}:
        return "where the decay is added, not on what the loss is divided by"
    return "both where the decay is added and what the loss is divided by"


def picture(runs: Runs) -> Picture:
    """The picture shows the two terms of each sum (left), and the weights' length over the updates (right)."""
    first = runs["sums"][0]
    figure, (left, right) = panels(
        ("loss divided by, decay", "times the term is there"), ("updates", "length of the weights")
    )
    places, size = np.arange(len(SUMS)), first["sizes"][-1]
    for shift, (term, grey) in enumerate((("data", "0.25"), ("decay", "0.7"))):
        heights = [times(runs, name)[shift] for name in SUMS]
        left.bar(places + 0.4 * shift - 0.2, heights, 0.38, color=grey, label=term)
    left.set(xticks=places, xticklabels=[name.replace(", ", "\n") for name in SUMS])
    left.axhline(1, color="black", lw=1)
    for name in SUMS:
        every = max(1, len(first["norms"][name]) // 10)
        right.plot(range(1, 1 + len(first["norms"][name])), first["norms"][name], markevery=every, label=name)
    right.plot(
        range(1, 1 + len(first["one worker"])), first["one worker"], ":", marker="", color="black", label="one worker"
    )
    for ax in (left, right):
        ax.legend(fontsize=8)
    ends = {name: mean_std([run["norms"][name][-1] for run in runs["sums"]]) for name in SUMS}
    alone = mean_std([run["one worker"][-1] for run in runs["sums"]])
    listed = ", ".join(f"{end} for '{name}'" for name, end in ends.items())
    return Picture(
        figure,
        f"Left: bars of how many times the data term and the decay are in the summed gradient; both once only for "
        f"'kn, outside'. Right: the weights' length over the updates; it ends at {listed}; one worker: {alone}.",
        f"{size} workers, losses summed. The weights end with a length of {listed}; one worker with all images "
        f"ends with {alone}.",
    )


CLAIM = Claim(
    id="C23",
    statement="Normalise the loss by kn, not by n, or weight decay is K times too strong.",
    source="S3",
    lesson="13_lab_of_lesson_03",
    variants=("sums",),
    seeds=5,
    settings={"workers": 8, "batch_size": 64, "updates": 400, "images": 20_000},
    quick={"workers": 4, "batch_size": 64, "updates": 60, "images": 4096},
    run=run,
    judge=judge,
    picture=picture,
    caution="The terms are exact at any size; with few updates the weights have not come to their final length.",
)
