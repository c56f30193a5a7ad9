"""C02: what goes wrong if the workers' shards differ in size?

Four real Horovod workers compute in float64, and the last worker has fewer images than the others. One process computes
the gradient of all their images. It is compared with the mean of the workers' mean gradients, and with the mean
weighted by the numbers of images. The images are shuffled, or sorted by class. In the second case the small shard
differs from the rest in more than its size.
"""

import numpy as np
import torch
from torch import Tensor

from benchmarks.claims.lesson_03.c01_averaged_gradients import EQUAL, gradient, network
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from cifar.data import Split
from cifar.model import no_norm

WORKERS = 4  # three with equal shards, and one with a smaller shard
PARTS = (1, 2, 8)  # each other worker's number of images is divided by this for the last worker
ORDERS = {
    "shuffled": lambda labels: torch.arange(len(labels)),
    "sorted": lambda labels: torch.argsort(labels, stable=True),
}
BIASED = 1e-6  # relative error: far above rounding in float64, and far below any error that could matter


def differences(seed: int, batch_size: int, draws: int, device: str) -> dict[str, list[Values]]:
    """Runs on a worker. Measures how far both means are from one process's gradient.

    The result has one entry for each order and each size of the last shard.
    """
    split, _ = horovod_ops.data(device, images=4096, test_images=1)
    net = network(no_norm, seed, split.images.device)
    return {
        order: [_difference(net, split, order, batch_size, part, draws, seed) for part in PARTS] for order in ORDERS
    }


def _difference(net, split: Split, order: str, batch_size: int, part: int, draws: int, seed: int) -> Values:
    random = torch.Generator().manual_seed(seed)
    counts = [batch_size] * (WORKERS - 1) + [batch_size // part]
    plain, weighted, one = [], [], []
    for _ in range(draws):
        indices = torch.randperm(len(split), generator=random)[: sum(counts)]
        indices = indices[ORDERS[order](split.labels[indices].cpu())]
        for means, value in zip((plain, weighted, one), _three(net, split, indices, counts), strict=True):
            means.append(value)
    length = torch.stack(one).norm(dim=1).square().mean().sqrt()
    errors = torch.stack(plain) - torch.stack(one)
    return {
        "images": counts[-1],
        "plain": (errors.norm(dim=1).square().mean().sqrt() / length).item(),
        "weighted": ((torch.stack(weighted) - torch.stack(one)).norm(dim=1).square().mean().sqrt() / length).item(),
        "averaged": (errors.mean(0).norm() / length).item(),
    }


def _three(net, split: Split, indices: Tensor, counts: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """The mean of means, the mean weighted by counts, and the gradient of all images.

    Rank 0 computes the last of these and sends it to the others.
    """
    rank = horovod_ops.hvd.rank()
    mine, count = gradient(net, split, indices.split(counts)[rank]), counts[rank]
    one = gradient(net, split, indices) if rank == 0 else torch.zeros_like(mine)
    weighted = (
        horovod_ops.total(mine * count, "weighted") / horovod_ops.total(torch.tensor(float(count)), "count").item()
    )
    return horovod_ops.mean(mine, "plain"), weighted, horovod_ops.total(one, "one")


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure both orders in one launch."""
    options = {name: settings[name] for name in ("batch_size", "draws", "device")}
    found = on_workers(f"{__name__}:differences", WORKERS, seed=seed, **options)[0]
    return {order: {"draws": settings["draws"], "sizes": found[order]} for order in ORDERS}


def values(runs: Runs, variant: str, which: str) -> np.ndarray:
    """The value called `which`, with one row per run and one column per size of the last shard."""
    return np.array([[size[which] for size in run["sizes"]] for run in runs[variant]])


def judge(runs: Runs) -> Verdict:
    """The claim holds if the mean of means is wrong exactly for unequal shards, and weighting repairs it."""
    plain = np.concatenate([values(runs, variant, "plain") for variant in ORDERS])
    weighted = max(values(runs, variant, "weighted").max() for variant in ORDERS)
    last = {variant: values(runs, variant, "plain")[:, -1].mean() for variant in ORDERS}
    kept = {variant: values(runs, variant, "averaged")[:, -1].mean() / last[variant] for variant in ORDERS}
    draws = runs["shuffled"][0]["draws"]
    text = (
        f"with equal shards the mean of means is exact ({plain[:, 0].max():.0e}); the most unequal ones make it wrong "
        f"by {last['shuffled']:.0%} of the gradient's length (shuffled) and {last['sorted']:.0%} (sorted by class); "
        f"weighted by the counts it is exact again ({weighted:.0e}). Averaged over {draws} batches "
        f"{kept['shuffled']:.0%} of the error stays with shuffled shards (noise would leave {draws**-0.5:.0%}) and "
        f"{kept['sorted']:.0%} with sorted ones, where it is a bias"
    )
    exact = plain[:, 0].max() < EQUAL and weighted < EQUAL
    if exact and plain[:, 1:].min() > BIASED:
        return Verdict("holds", f"{text}.")
    return Verdict("fails" if plain[:, 1:].max() < BIASED else "depends", f"{text}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the error of one batch with and without weights (left), and that of many batches (right)."""
    labels = ("images of the last worker", "relative error of the gradient")
    figure, (one, many) = panels(labels, (labels[0], "relative error of the mean over batches"))
    images = [size["images"] for size in runs["shuffled"][0]["sizes"]]
    for variant in ORDERS:
        one.plot(images, values(runs, variant, "plain").mean(0), label=f"mean of means, {variant}")
        many.plot(images, values(runs, variant, "averaged").mean(0), label=variant)
    weighted = np.max([values(runs, variant, "weighted").max(0) for variant in ORDERS], axis=0)
    one.plot(images, weighted, label="weighted by count")
    for ax in (one, many):
        ax.set_xscale("log", base=2)
        ax.set(xticks=images, xticklabels=[str(count) for count in images])
        ax.legend()
    one.set(yscale="log", ylim=(1e-17, 10))
    many.set_ylim(0, max(0.01, 1.1 * max(values(runs, variant, "averaged").mean(0).max() for variant in ORDERS)))
    worst = {variant: values(runs, variant, "plain")[:, -1].mean() for variant in ORDERS}
    left = {variant: values(runs, variant, "averaged").mean(0)[-1] for variant in ORDERS}
    return Picture(
        figure,
        "Left: the error of the mean of means grows as the last shard shrinks, that of the weighted mean stays at "
        f"rounding, {weighted.max():.0e}. Right: the error of the mean over many batches, at the smallest last shard "
        f"{left['shuffled']:.0%} (shuffled) and {left['sorted']:.0%} (sorted).",
        f"Four workers, the first three with {images[0]} images each. With "
        f"{counted(images[-1], 'image')} on the last the mean "
        f"of means is wrong by {worst['shuffled']:.0%} (shuffled) and {worst['sorted']:.0%} (sorted); mean of "
        f"{counted(len(runs['shuffled']), 'seed')}, {runs['shuffled'][0]['draws']} batches each.",
    )


CLAIM = Claim(
    id="C02",
    statement="The mean of the workers' gradients is wrong where the data does not divide evenly.",
    source="S0",
    lesson="03_data_parallelism_by_hand",
    variants=tuple(ORDERS),
    seeds=5,
    settings={"batch_size": 16, "draws": 16},
    quick={"batch_size": 8, "draws": 3},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="Over few batches noise has not averaged out, and looks like a bias.",
)
