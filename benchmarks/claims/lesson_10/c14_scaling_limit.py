"""C14: is synchronous training impractical past tens of workers?

A ring all-reduce of n bytes among K workers takes the time of 2(K-1) messages and of 2n(K-1)/K bytes (the alpha-beta
model). It also takes the wait until Horovod's background threads have agreed on it, which depends neither on K nor on
n. The three constants are fitted to real workers on this machine. One worker shows how much longer than the median
updates take. Updates of up to 4,096 workers are then simulated: all wait for the slowest, and then exchange. A faster
processor is delayed as often per second as this one, and for as long. The result depends on how long a worker computes
for each byte that it exchanges, and on the time of a message. Several such cases are therefore compared.
"""

import functools
import time

import numpy as np

from benchmarks.cost_models.ring_all_reduce import fit, ring
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import axes
from benchmarks.instruments.horovod_launch import AS_IT_IS, on_workers

SIZES = (4 * 2**10, 64 * 2**10, 2**20, 4 * 2**20, 16 * 2**20)  # sizes of the measured all-reduces, in bytes
TEAMS = (2, 4)  # numbers of workers of the measured all-reduces
WORKERS = tuple(2**power for power in range(13))  # simulated numbers of workers: 1 to 4,096
HALF = 0.5  # training counts as impractical if workers compute for less than this share of their time
TENS = 64  # the largest number that counts as "tens of workers"
DRAWS = 400  # simulated updates for each number of workers
PARAMETERS = {"small": 0.48e6, "large": 25.6e6}  # weights of the lessons' network, and of a ResNet-50 (He et al. 2015)
IMAGE_COST = 4.1e9 / 12.07e6  # an image's multiply-adds in a ResNet-50, divided by those in the lessons' network
MANY = 50  # the sum of more draws than this is close to a normal distribution, which replaces it
# For each case: the network, and how many times as fast as here the processor, the bandwidth and the messages are.
CASES = {
    "small network, as here": ("small", 1, 1, 1),
    "small network, 100x faster processor": ("small", 100, 1, 1),
    "ResNet-50, as here": ("large", 1, 1, 1),
    "ResNet-50, 100x faster processor": ("large", 100, 1, 1),
    "ResNet-50, 100x faster processor, 10x faster bytes": ("large", 100, 10, 1),
    "ResNet-50, 100x faster processor, 10x faster bytes, 100x faster messages": ("large", 100, 10, 100),
}


def update_seconds(updates: int, batch_size: int, device: str, seed: int) -> list[float]:
    """The seconds of each of `updates` updates of the lessons' network on one worker.

    Five updates come before them and do not count.
    """
    import torch

    from benchmarks.experiment.dataset import data
    from benchmarks.instruments.simulated_workers import Recipe, Team

    train, _ = data({"device": device, "images": 4096})
    team, seconds = Team(Recipe(batch_size=batch_size), seed, train), []
    for _ in range(updates + 5):
        started = time.perf_counter()
        team.update(train, (torch.arange(batch_size),)).item()
        seconds.append(time.perf_counter() - started)
    return seconds[5:]


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the seconds of all-reduces by workers and bytes, and the seconds of one worker's updates."""
    task = "benchmarks.cost_models.ring_all_reduce:all_reduce_seconds"
    times = {size: on_workers(task, size, AS_IT_IS, sizes=SIZES, repeats=settings["repeats"])[0] for size in TEAMS}
    updates = update_seconds(settings["updates"], settings["batch_size"], settings["device"], seed)
    return {"workers": TEAMS, "bytes": SIZES, "seconds": [times[size] for size in TEAMS], "updates": updates}


def _late(late: np.ndarray, updates: float, shape: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Draw the delays, in seconds, of updates that are `updates` times as long as a measured one.

    `late` holds the measured delays. Each drawn delay is the sum of `updates` of them. If `updates` is not whole, the
    last one is added with a probability equal to the fraction. The result has the shape `shape`.
    """
    whole, part = divmod(updates, 1)
    if whole > MANY:
        return np.maximum(0, draw.normal(updates * late.mean(), np.sqrt(updates) * late.std(), shape))
    total = draw.choice(late, shape) * (draw.random(shape) < part)
    for _ in range(int(whole)):
        total += draw.choice(late, shape)
    return total


def efficiency(values: Values, case: str) -> list[float]:
    """The share of its time in which a worker computes, for each number in WORKERS. The per-worker batch is fixed."""
    return _simulated(fit(values), tuple(values["updates"]), case)


@functools.lru_cache  # The verdict and the figure ask for the same simulations.
def _simulated(constants: tuple[float, float, float], updates: tuple[float, ...], case: str) -> list[float]:
    (once, alpha, beta), (network, processor, bandwidth, messages) = constants, CASES[case]
    longer = (IMAGE_COST if network == "large" else 1) / processor
    median = float(np.median(updates))
    late = np.maximum(0, np.array(updates) - median)
    draw = np.random.default_rng(0)
    shares = []
    for k in WORKERS:
        slowest = longer * median + _late(late, longer, (DRAWS, k), draw).max(axis=1).mean()
        exchange = ring((once, alpha / messages, beta / bandwidth), k, 4 * PARAMETERS[network])
        share = longer * (median + late.mean()) / (slowest + exchange)
        shares.append(min(1.0, float(share)))  # With one worker the draws may be shorter than the mean.
    return shares


def most_workers(shares: list[float]) -> int:
    """The largest number of workers that compute for at least half of their time."""
    return max((k for k, share in zip(WORKERS, shares, strict=True) if share >= HALF), default=0)


def limits(runs: Runs) -> dict[str, float]:
    """The largest number of workers that compute for at least half of their time, for each case: the runs' median."""
    return {case: float(np.median([most_workers(efficiency(run, case)) for run in runs["machine"]])) for case in CASES}


def judge(runs: Runs) -> Verdict:
    """The claim holds if no case allows more than TENS workers, and fails if all cases do."""
    found = limits(runs)
    text = "the most workers that still compute half of their time: " + "; ".join(
        f"{c}: {k:,.0f}" for c, k in found.items()
    )
    more = [k > TENS for k in found.values()]
    word = "fails" if all(more) else "depends" if any(more) else "holds"
    on = "It depends on how long a worker computes for each byte it exchanges, and on what a message costs: "
    return Verdict(word, f"{on if word == 'depends' else ''}{text} (simulated up to {WORKERS[-1]:,}).")


def picture(runs: Runs) -> Picture:
    """The picture shows the first run's efficiency against the number of workers, with one line per case."""
    figure, ax = axes("workers", "share of time spent computing")
    for case in CASES:
        ax.semilogx(WORKERS, efficiency(runs["machine"][0], case), base=2, label=case)
    ax.axhline(HALF, color="black", linewidth=0.8, linestyle="-", marker="")
    ax.set_ylim(0, 1.02)
    ax.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    fits = [fit(run) for run in runs["machine"]]
    units = ((0, 1e3), (1, 1e3), (2, 1e9))
    once, alpha, beta = (mean_std([found[at] for found in fits], scale, 2) for at, scale in units)
    measured = min(len(run["updates"]) for run in runs["machine"])
    spread = np.median([np.max(run["updates"]) / np.median(run["updates"]) for run in runs["machine"]])
    found = ", ".join(f"{case}: up to {k:,.0f} workers above a half" for case, k in limits(runs).items())
    return Picture(
        figure,
        f"Falling lines of efficiency against the number of workers. {found}.",
        f"Fitted here: gamma is {once} ms an exchange, alpha is {alpha} ms a message, and beta is {beta} ns a byte. "
        f"{measured} updates were measured, and the slowest of them took {spread:.1f} times the median. All else is "
        f"simulated. Among many more than {measured} workers there would be slower ones than any that was measured, so "
        "the lines are too high there.",
    )


CLAIM = Claim(
    id="C14",
    statement="Synchronous training is impractical past tens of GPUs.",
    source="S1",
    lesson="20_lab_of_lesson_10",
    variants=("machine",),
    seeds=3,
    settings={"repeats": 30, "updates": 150, "batch_size": 64},
    quick={"repeats": 8, "updates": 15},
    run=run,
    judge=judge,
    picture=picture,
    caution="Few repetitions on a busy machine make alpha and the slowest update larger, and both limit the workers.",
    timing_sensitive=True,
)
