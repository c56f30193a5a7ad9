"""C01: is the mean of K workers' gradients the gradient of one worker with a K times larger batch?

Real Horovod workers average their gradients in float64, so that rounding cannot hide a difference. One process computes
the gradient of all their images. Three networks are compared: one without normalisation, one with batch normalisation
over each worker's own images, and one whose batch statistics are averaged over the workers as well.
"""

import horovod.torch as hvd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import axes, counted
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.methods.sync_norm import SynchronisedNorm
from cifar.data import Split, normalise, shard, shuffle
from cifar.model import BootcampResNet, no_norm

# The normalisation of a worker's network, and that of the one process's network. Both networks have the same weights,
# drawn in the same order.
NETWORKS = {
    "no_norm": (lambda **options: no_norm, no_norm),
    "per_worker_bn": (lambda **options: nn.BatchNorm2d, nn.BatchNorm2d),
    "synchronised_bn": (lambda **options: lambda channels: SynchronisedNorm(channels, **options), nn.BatchNorm2d),
}
NAMES = {
    "no_norm": "no normalisation",
    "per_worker_bn": "batch norm, each worker's own statistics",
    "synchronised_bn": "batch norm, statistics of all workers",
}
EQUAL = 1e-9  # relative: float64 has 16 digits, and sums over many images lose only a few of them


def gradient(net: nn.Module, split: Split, indices: Tensor) -> Tensor:
    """The gradient of the mean loss over the images at `indices`, as one float64 vector."""
    images, labels = split.batch(indices)
    loss = F.cross_entropy(net(normalise(images).double()), labels)
    return horovod_ops.flat(torch.autograd.grad(loss, list(net.parameters())))


def network(norm, seed: int, device: torch.device) -> nn.Module:
    """A network with float64 weights, which are the same on every worker."""
    torch.manual_seed(seed)
    return BootcampResNet(norm=norm).double().to(device)


def errors(seed: int, sizes: list[int], batch_size: int, device: str) -> dict[str, list[float]]:
    """Runs on a worker. Returns the relative difference for each network and each number of workers in `sizes`.

    It is 0 where this worker does not take part, and on all workers except rank 0.
    """
    train, _ = horovod_ops.data(device, images=4096, test_images=1)
    teams = [hvd.add_process_set(list(range(size))) for size in sizes[:-1]] + [hvd.global_process_set]
    found = {variant: [] for variant in NETWORKS}
    for size, team in zip(sizes, teams, strict=True):
        indices = shuffle(len(train), seed, epoch=size)[: size * batch_size]
        for variant in NETWORKS:
            found[variant].append(_error(variant, seed, train, indices, team) if team.included() else 0.0)
    return found


def _error(variant: str, seed: int, split: Split, indices: Tensor, team: hvd.ProcessSet) -> float:
    of_worker, of_one = NETWORKS[variant]
    net = network(of_worker(process_set=team), seed, split.images.device)
    mine = gradient(net, split, shard(indices, team.rank(), team.size()))
    averaged = horovod_ops.mean(mine, "gradient", process_set=team)
    if hvd.rank() > 0:  # only rank 0 computes what follows; the others wait for it at the next exchange
        return 0.0
    one = gradient(network(of_one, seed, split.images.device), split, indices)
    return ((averaged - one).norm() / one.norm()).item()


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure all networks and numbers of workers in one launch, with the largest number of workers."""
    sizes = [2**power for power in range(settings["workers"].bit_length())]
    found = on_workers(
        f"{__name__}:errors", settings["workers"], {"HOROVOD_DYNAMIC_PROCESS_SETS": "1"},
        seed=seed, sizes=sizes, batch_size=settings["batch_size"], device=settings["device"],
    )[0]  # fmt: skip
    return {variant: {"sizes": sizes, "errors": found[variant]} for variant in NETWORKS}


def worst(runs: Runs, variant: str) -> float:
    """The largest relative difference of a variant with more than one worker, over all runs."""
    pairs = [pair for run in runs[variant] for pair in zip(run["sizes"], run["errors"], strict=True)]
    return max(error for size, error in pairs if size > 1)


def judge(runs: Runs) -> Verdict:
    """The claim holds if the gradients are equal for every number of workers, also with each worker's own batch norm.

    It depends on the normalisation if only the network without it has equal gradients, and fails if not even that has.
    """
    plain, own, shared = (worst(runs, variant) for variant in NETWORKS)
    text = (
        f"the largest relative difference is {plain:.0e} without normalisation, {own:.2g} with each worker's own batch "
        f"norm and {shared:.0e} with batch statistics of all workers"
    )
    if plain > EQUAL:
        return Verdict("fails", f"{text}.")
    if own <= EQUAL:
        return Verdict("holds", f"{text}.")
    cure = "restore it" if shared <= EQUAL else "do not restore it"
    why = "it holds up to rounding unless the images of a batch see each other; synchronised statistics"
    return Verdict("depends", f"{text}: {why} {cure}.")


def picture(runs: Runs) -> Picture:
    """The picture shows each network's largest relative difference over the seeds against the number of workers."""
    figure, ax = axes("workers", "relative difference of the gradients")
    for variant, name in NAMES.items():
        sizes = runs[variant][0]["sizes"]
        found = [max(errors) for errors in zip(*(run["errors"] for run in runs[variant]), strict=True)]
        ax.plot(sizes, [max(error, 1e-17) for error in found], label=name)
    ax.set(yscale="log", ylim=(1e-17, 10), xscale="log", xticks=sizes, xticklabels=[str(size) for size in sizes])
    ax.minorticks_off()
    ax.legend(loc="center right")
    numbers = ", ".join(f"{NAMES[variant]} {worst(runs, variant):.0e}" for variant in NAMES)
    return Picture(
        figure,
        f"Three lines over the number of workers on a logarithmic axis; their largest values: {numbers}.",
        f"Mean of the workers' gradients against one worker with all their images, float64, largest of "
        f"{counted(len(runs['no_norm']), 'seed')}: {numbers}.",
    )


CLAIM = Claim(
    id="C01",
    statement="Averaging the gradients of K workers equals one worker with a K times larger batch.",
    source="S0, S1",
    lesson="03_data_parallelism_by_hand",
    variants=tuple(NETWORKS),
    seeds=5,
    settings={"workers": 8, "batch_size": 16},
    quick={"workers": 4, "batch_size": 8},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="With fewer images a worker, its batch statistics are further from those of all images together.",
)
