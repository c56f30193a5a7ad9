"""C28: is there a critical batch size, and does the noise of the gradient predict it?

In the first half, Horovod workers train together. The squared length of each worker's gradient and that of their
average give the simple noise scale, tr(Sigma) / |G|^2 (McCandlish et al. 2018, arXiv:1812.06162, appendix A). In the
second half, one network is trained to the same test loss with many batch sizes, each with its best rate. If
updates = S_min (1 + B_crit / B) fits, B_crit should be about the noise scale.
"""

import math
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import COLOURS, counted, panels
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.instruments.simulated_workers import evaluate
from benchmarks.methods.gradients import gradient, step
from cifar.data import Split

SIZES = (4, 16, 64, 256, 1024)  # batch sizes of the second half, in images
WORKER_BATCH = 64  # images per worker in the first half
WINDOWS = 6  # parts of the run, each with its own noise scale
RATE, RATE_BATCH = 0.25, 40  # the search for the best rate begins at RATE / (1 + RATE_BATCH / batch)
FACTOR, REACH = 1.6, 5  # the ratio of neighbouring rates, and how many such steps the search may go from its start
SPACING = 1.07  # the loss is evaluated each time the number of updates has grown by 7 %
RECENT = 3  # the mean of so many evaluations must reach the target, because one low value may be chance
GUESSING = math.log(10)  # nats: the loss of ten equal probabilities
LOST = 1.0  # nats: a run whose loss is this much above GUESSING has diverged
FITS = 1.5  # if no mean number of updates is off by a larger factor, the hyperbola fits
AGREE = 3.0  # noise scale and critical batch size agree if their ratio is within this factor


def network() -> nn.Module:
    """A convolutional network with only 26,000 weights, so that a search over batch sizes and rates is affordable."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(2048, 10),
    )  # fmt: skip


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside the `with` block. Two would wait longer for each other than so small a network computes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def descend(
    next_gradient: Callable[[nn.Module], Tensor], rate: float, limit: float, seed: int, test: Split, gain: float
) -> float:
    """The updates of plain SGD until the test loss is `gain` nats below GUESSING.

    The number is interpolated between evaluations. It is infinite if `limit` updates do not suffice, or if the run
    diverges.
    """
    torch.manual_seed(seed)
    net = network().to(test.images.device)
    target, before, due, update = GUESSING - gain, (0.0, GUESSING), 1, 0
    losses = deque([GUESSING] * RECENT, RECENT)
    while update < limit:
        step(net, next_gradient(net), rate)
        update += 1
        if update < due:
            continue
        due = math.ceil(update * SPACING)
        losses.append(evaluate(net, test, "test")["test_loss"])
        loss = statistics.fmean(losses)
        if loss <= target:
            return before[0] + (update - before[0]) * (before[1] - target) / (before[1] - loss)
        if not loss < GUESSING + LOST:
            return math.inf
        before = (update, loss)
    return math.inf


def start_rate(batch: int) -> float:
    """The rate at which the search for a batch size's best rate begins.

    The formula has the form of that in McCandlish et al. 2018, section 2.2.
    """
    return RATE / (1 + RATE_BATCH / batch)


def search(updates_with: Callable[[float, float], float], start: float, limit: float) -> dict[float, float]:
    """The updates to the target by rate. Neighbours of the best rate are tried until they are worse.

    `updates_with(rate, limit)` returns the updates with a rate, or infinity if they exceed `limit`. A rate that needs
    more updates than the best one so far counts as infinite.
    """
    found, best = {}, 0
    while wanted := [k for k in (best, best + 1, best - 1) if k not in found and abs(k) <= REACH]:
        found[wanted[0]] = updates_with(start * FACTOR ** wanted[0], min([limit, *found.values()]))
        best = min(found, key=found.get)
    return {start * FACTOR**k: found[k] for k in sorted(found)}


def steps(batch: int, seed: int, settings: Settings) -> Values:
    """Measure the updates to the target with a batch size, for each rate.

    The number is None for a rate that needs more updates than an earlier one, or never reaches the target.
    """
    train, test = data(settings)

    def updates_with(rate: float, limit: float) -> float:
        draw = torch.Generator().manual_seed(seed)

        def next_gradient(net: nn.Module) -> Tensor:
            return gradient(net, train, torch.randint(len(train), (batch,), generator=draw))

        return descend(next_gradient, rate, limit, seed, test, settings["gain"])

    with one_thread():
        found = search(updates_with, start_rate(batch), settings["updates"])
    updates = [value if math.isfinite(value) else None for value in found.values()]
    return {"batch": batch, "rates": list(found), "updates": updates}


def norms(seed: int, settings: Settings) -> list[list[float]]:
    """On each worker: mean squared length of the workers' gradients, and that of their average, at each update."""
    import horovod.torch as hvd

    from benchmarks.instruments import horovod_ops

    train, test = horovod_ops.data(settings["device"], settings["images"], settings["test_images"])
    draw = torch.Generator().manual_seed(seed * hvd.size() + hvd.rank())  # each worker has images of its own
    seen = []

    def next_gradient(net: nn.Module) -> Tensor:
        mine = gradient(net, train, torch.randint(len(train), (WORKER_BATCH,), generator=draw))
        both = torch.cat([mine, mine.square().sum().view(1)])
        average, small = horovod_ops.mean(both.cpu(), "gradient").split([len(mine), 1])
        seen.append([small.item(), average.square().sum().item()])
        return average

    with one_thread():
        descend(next_gradient, start_rate(hvd.size() * WORKER_BATCH), settings["updates"], seed, test, settings["gain"])
    return seen


def noise_scale(small: float, big: float, size: int) -> float:
    """The noise scale tr(Sigma) / |G|^2 in images.

    `small` and `big` are the squared lengths of the gradient at one worker's batch and at the batch of all workers.
    """
    one, all = WORKER_BATCH, size * WORKER_BATCH
    return (small - big) / (1 / one - 1 / all) / ((all * big - one * small) / (all - one))


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the first half of the experiment ("noise"), or one batch size of the second half."""
    if variant != "noise":
        return steps(int(variant.removeprefix("batch-")), seed, settings)
    size = settings["workers"]
    seen = on_workers(f"{__name__}:norms", size, seed=seed, settings=settings)[0]
    small, big = np.array([part.mean(axis=0) for part in np.array_split(np.array(seen), WINDOWS)]).T.tolist()
    return {"size": size, "updates": len(seen), "small": small, "big": big}


def scale(run: Values) -> float:
    """A run's noise scale. Both squared lengths are averaged before they are divided, because single ratios scatter."""
    return float(noise_scale(np.mean(run["small"]), np.mean(run["big"]), run["size"]))


def scales(run: Values) -> list[float]:
    """The noise scale of each part of a run; nan where noise hides the gradient and the estimate is not positive."""
    found = [noise_scale(small, big, run["size"]) for small, big in zip(run["small"], run["big"], strict=True)]
    return [value if value > 0 else math.nan for value in found]


def best(run: Values) -> tuple[float, float, bool]:
    """The best rate, its updates to the target, and whether it is the smallest or the largest rate tried."""
    tried = [math.inf if value is None else value for value in run["updates"]]
    place = int(np.argmin(tried))
    return run["rates"][place], tried[place], place in (0, len(tried) - 1)


def measured(runs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """The batch sizes, and the updates to the target with the best rate: `(runs, batch sizes)`."""
    variants = [variant for variant in runs if variant != "noise"]
    seeds = min(len(runs[variant]) for variant in variants)
    return np.array([runs[variant][0]["batch"] for variant in variants]), np.array(
        [[best(runs[variant][seed])[1] for variant in variants] for seed in range(seeds)]
    )


def hyperbola(sizes: np.ndarray, updates: np.ndarray) -> tuple[float, float]:
    """S_min and B_crit of the hyperbola S_min (1 + B_crit / B), by least squares of the logarithms.

    Infinite numbers of updates are left out.
    """
    from scipy.optimize import least_squares

    sizes, updates = sizes[np.isfinite(updates)], updates[np.isfinite(updates)]
    begin = np.log([updates.min(), np.median(sizes)])
    found = least_squares(lambda p: np.log(updates) - p[0] - np.log1p(np.exp(p[1]) / sizes), begin)
    return tuple(np.exp(found.x).tolist())


@dataclass(frozen=True)
class Finding:
    """What the runs show.

    `critical` and `noise` hold the critical batch size and the noise scale of each seed, in images. `misfit` is the
    largest factor between the fit and the mean updates. `edges` names the variants whose best rate lies at the edge of
    the rates tried.
    """

    critical: list[float]
    noise: list[float]
    misfit: float
    edges: list[str]

    @property
    def ratio(self) -> float:
        """The geometric mean of the noise scale divided by that of the critical batch size."""
        return float(np.exp(np.mean(np.log(self.noise)) - np.mean(np.log(self.critical))))


def finding(runs: Runs) -> Finding:
    """Fit a hyperbola to each seed, and one to the geometric mean over the seeds, whose misfit is returned."""
    sizes, updates = measured(runs)
    middle = np.exp(np.log(updates).mean(axis=0))
    low, critical = hyperbola(sizes, middle)
    misfit = np.abs(np.log(middle / (low * (1 + critical / sizes)))).max()
    edges = [variant for variant in runs if variant != "noise" and any(best(run)[2] for run in runs[variant])]
    noise = [scale(run) for run in runs["noise"]]
    return Finding([hyperbola(sizes, line)[1] for line in updates], noise, float(np.exp(misfit)), edges)


def judge(runs: Runs) -> Verdict:
    """The claim holds if the updates follow the hyperbola and its B_crit is about the noise scale."""
    found, (sizes, _) = finding(runs), measured(runs)
    text = (
        f"critical batch size {mean_std(found.critical, digits=0)} images, noise scale "
        f"{mean_std(found.noise, digits=0)} ({found.ratio:.1f} times as large); updates within a factor "
        f"{found.misfit:.2f} of the hyperbola"
    )
    if found.edges:
        text += f"; the best rate lies at the edge of those tried for {', '.join(found.edges)}"
    critical = float(np.exp(np.mean(np.log(found.critical))))
    if not found.misfit < FITS or not sizes[0] < critical < sizes[-1]:
        return Verdict("fails", f"{text}: no such bend within {sizes[0]} to {sizes[-1]} images.")
    if 1 / AGREE < found.ratio < AGREE:
        return Verdict("holds", f"{text}.")
    return Verdict(
        "depends", f"{text}: there is a bend, but the noise scale tells no more than its order of magnitude."
    )


def picture(runs: Runs) -> Picture:
    """The picture shows updates against batch size with the hyperbola (left), and the noise scale by part (right)."""
    figure, (left, right) = panels(
        ("batch size (images)", "updates to the target, best rate"),
        ("part of the run", "noise scale (images)"),
        size=(9.0, 3.8),
    )
    found, (sizes, updates) = finding(runs), measured(runs)
    least, critical = hyperbola(sizes, np.exp(np.log(updates).mean(axis=0)))
    _bend(left, sizes, updates, least, critical, float(np.mean(found.noise)))
    _through(right, runs, critical)
    seen = np.array([scales(run) for run in runs["noise"]])
    low, high = np.nanmin(seen), np.nanmax(seen)
    both = f"critical batch size {mean_std(found.critical, digits=0)}, noise scale {mean_std(found.noise, digits=0)}"
    return Picture(
        figure,
        f"Left, on logarithmic axes: the updates to the target fall with the batch size and flatten around "
        f"{critical:.0f} images. Right: the noise scale in parts of a run, between {low:.0f} and {high:.0f} images.",
        f"Left: updates until the test loss is reached, each batch size with its best rate, and the fitted hyperbola. "
        f"Right: noise scale on the workers' way to the same loss. Over {counted(len(updates), 'run')}: {both} images.",
    )


def _bend(ax, sizes: np.ndarray, updates: np.ndarray, least: float, critical: float, noise: float) -> None:
    fine = np.geomspace(sizes[0], sizes[-1])
    middle = np.exp(np.log(updates).mean(axis=0))
    for line in updates:
        ax.plot(sizes, line, "o", color="0.6", ms=3, ls="")
    ax.loglog(sizes, middle, "o", ls="", color=COLOURS[0], label="measured")
    ax.loglog(fine, least * (1 + critical / fine), "-", marker="", color=COLOURS[0], label="S_min (1 + B_crit / B)")
    ax.axvline(critical, color="0.4", ls="--", label="critical batch size")
    ax.axvline(noise, color=COLOURS[1], ls=":", label="noise scale")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.xaxis.minorticks_off()
    ax.legend(frameon=True)


def _through(ax, runs: Runs, critical: float) -> None:
    parts = (np.arange(WINDOWS) + 0.5) / WINDOWS
    for number, run in enumerate(runs["noise"]):
        ax.plot(
            parts,
            scales(run),
            "o-",
            color=COLOURS[1],
            lw=1,
            label="" if number else "noise scale, one line for each run",
        )
    ax.axhline(critical, color="0.4", ls="--", label="critical batch size")
    ax.set_yscale("log")
    ax.legend()


CLAIM = Claim(
    id="C28",
    statement="There is a critical batch size, beyond which larger batches save ever fewer updates, and the gradient "
    "noise scale tells it.",
    source="S4",
    lesson="01_gradient_descent_and_noise",
    variants=("noise", *(f"batch-{size}" for size in SIZES)),
    seeds=5,
    settings={"workers": 4, "images": 50_000, "test_images": 1000, "gain": 0.8, "updates": 10_000},
    quick={"workers": 2, "images": 10_000, "test_images": 500, "gain": 0.3, "updates": 1000},
    run=run,
    judge=judge,
    picture=picture,
    caution="A short run ends at a higher loss, where gradients agree better: its noise scale and its critical batch "
    "size are smaller.",
)
