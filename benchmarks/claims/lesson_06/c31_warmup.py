"""C31: does linear scaling of the rate fail early in training, and does warmup cure that?

Eight workers train with the base rate ("base"), with eight times that rate from the first update ("scaled"), and with a
rate that climbs to eight times over the first part of training ("warmup"). They use SGD at two base rates, and Adam.
The experiment counts the diverged runs, and measures the highest loss and the final accuracy.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from torch import nn
from torch.optim import SGD, Adam, Optimizer

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import Difference, deviation, difference, mean_std
from benchmarks.experiment.plots import GREY, counted, panels
from benchmarks.instruments.simulated_workers import Recipe, train
from cifar.schedule import warmup_factor

SIZE = 8  # number of workers, and therefore the factor of the scaled rate
GUESSING = math.log(10)  # nats: the loss of a network that gives each of ten classes the same probability
NOTHING = 0.99 * GUESSING  # nats: a run that ends above this loss has learned nothing, and counts as diverged
MAJORITY = 3  # with fewer runs, "most of them" means nothing
SPIKE = 2 * GUESSING  # nats: a loss above this counts as a failure, even if the run does not diverge
PART = 4  # the warmup takes the first 1 / PART of training; the last 1 / PART shows whether a run has learned


def _sgd(rate: float, net: nn.Module) -> Optimizer:
    return SGD(net.parameters(), lr=rate, momentum=0.9)


def _adam(net: nn.Module) -> Optimizer:
    return Adam(net.parameters(), lr=0.001)


# The number in each name is the base rate.
OPTIMIZERS = {"sgd-0.005": partial(_sgd, 0.005), "sgd-0.02": partial(_sgd, 0.02), "adam-0.001": _adam}
MODES = ("base", "scaled", "warmup")
VARIANTS = tuple(f"{name}-{mode}" for name in OPTIMIZERS for mode in MODES)


def factor(mode: str, epochs: int, update: int, updates_an_epoch: int) -> float:
    """The factor of the rate at an update.

    It is 1 for "base", and SIZE for "scaled". For "warmup" it rises from 1 to SIZE over the first part of training, and
    then stays SIZE.
    """
    if mode == "base":
        return 1.0
    return warmup_factor(update, epochs * updates_an_epoch // PART if mode == "warmup" else 0, SIZE)


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the loss of each update (None where it is not finite), and the accuracy at the end."""
    name, _, mode = variant.rpartition("-")
    recipe = Recipe(
        optimizer=OPTIMIZERS[name], size=SIZE, batch_size=settings["batch_size"], epochs=settings["epochs"],
        factor=partial(factor, mode, settings["epochs"]),
    )  # fmt: skip
    history = train(recipe, data(settings), seed)
    losses = [loss if math.isfinite(loss) else None for loss in history.losses]
    return {"losses": losses, "test_accuracy": history.last["test_accuracy"]}


def diverged(run: Values) -> bool:
    """Whether a loss was not finite, or the mean loss of the last part of training is that of guessing."""
    late = run["losses"][-max(1, len(run["losses"]) // PART) :]
    return None in run["losses"] or float(np.mean(late)) > NOTHING


def peak(run: Values) -> float:
    """The highest loss of an update; infinite if one of them was not finite."""
    return math.inf if None in run["losses"] else max(run["losses"])


def accuracies(runs: Runs, variant: str) -> list[float]:
    """The final test accuracy of each run."""
    return [run["test_accuracy"] for run in runs[variant]]


def gained(runs: Runs, name: str) -> Difference:
    """The accuracy with warmup minus that without, at the scaled rate."""
    return difference(accuracies(runs, f"{name}-warmup"), accuracies(runs, f"{name}-scaled"))


def fails(runs: Runs, name: str, mode: str = "scaled") -> bool:
    """Whether some runs diverge, or the loss spikes in most of them. By default the rate is scaled without warmup."""
    found = runs[f"{name}-{mode}"]
    return any(map(diverged, found)) or float(np.median([peak(run) for run in found])) > SPIKE


def cured(runs: Runs, name: str) -> bool:
    """Whether warmup cures the failure of the scaled rate.

    With warmup the runs must not fail. In addition the accuracy must be higher beyond the noise, or most runs must
    learn where most diverged without warmup.
    """
    both = [[diverged(run) for run in runs[f"{name}-{mode}"]] for mode in ("scaled", "warmup")]
    saved = min(map(len, both)) >= MAJORITY and np.mean(both[0]) > 0.5 > np.mean(both[1])
    return not fails(runs, name, "warmup") and bool(gained(runs, name).low > 0 or saved)


def judge(runs: Runs) -> Verdict:
    """The claim holds if the scaled rate fails early and warmup cures it, for both optimizers and all rates."""
    failing = [name for name in OPTIMIZERS if fails(runs, name)]
    both = [name for name in failing if cured(runs, name)]
    text = "; ".join(_sentence(runs, name) for name in OPTIMIZERS)
    if len(both) == len(OPTIMIZERS):
        return Verdict("holds", f"{text}.")
    if both:
        said = f"the scaled rate fails early for {_listed(failing)}, and warmup cures it for {_listed(both)}"
        return Verdict("depends", f"on optimizer and rate: {said}. {text}.")
    if not failing or any(gained(runs, name).high < 0 for name in failing):
        return Verdict("fails", f"{text}.")
    said = f"the scaled rate fails early for {_listed(failing)}; a cure by warmup is not seen"
    return Verdict("no difference seen", f"{said}. {text}.")


def _listed(names: list[str]) -> str:
    return " and ".join(names)


def _sentence(runs: Runs, name: str) -> str:
    modes = [runs[f"{name}-{mode}"] for mode in MODES]
    counts = ", ".join(f"{sum(map(diverged, found))} of {len(found)}" for found in modes)
    peaks = ", ".join(f"{np.median([peak(run) for run in found]):.1f}" for found in modes)
    means = ", ".join(mean_std(accuracies(runs, f"{name}-{mode}"), 100, 1) for mode in MODES)
    change = gained(runs, name)
    seen = "" if change.seen else ", no difference seen"
    return (
        f"{name} ({', '.join(MODES)}): diverged {counts}; highest loss {peaks}; accuracy {means} %, by warmup "
        f"{change.text(100, 1, ' points')}{seen}"
    )


def picture(runs: Runs) -> Picture:
    """The picture shows SGD's losses at the higher rate, and the highest loss and final accuracy of all variants."""
    figure, (loss, highest, accuracy) = panels(
        ("update", "training loss (nats)"), ("", "highest loss (nats)"), ("", "test accuracy (%)"),
        size=(11.0, 4.6),
    )  # fmt: skip
    shown = max((name for name in OPTIMIZERS if name.startswith("sgd")), key=lambda name: float(name[4:]))
    _draw_losses(loss, runs, shown)
    highest.axhline(GUESSING, color=GREY, linewidth=0.8)
    peaks = {variant: [min(peak(run), 1e3) for run in runs[variant]] for variant in VARIANTS}
    _draw_groups(highest, peaks, _median_and_range)
    _log_scale(highest)
    percent = {variant: [100 * value for value in accuracies(runs, variant)] for variant in VARIANTS}
    _draw_groups(accuracy, percent, lambda found: (np.mean(found), (deviation(found), deviation(found))))
    counts = {mode: sum(diverged(run) for name in OPTIMIZERS for run in runs[f"{name}-{mode}"]) for mode in MODES}
    told = ", ".join(f"{mode} {count}" for mode, count in counts.items())
    return Picture(
        figure,
        f"Three plots. Losses of {_label(shown)} over the updates for each way to set the rate; highest loss and final "
        f"accuracy for each optimizer. Diverged runs: {told}.",
        f"Left: {_label(shown)}, median of the runs. Middle: median and range. Right: mean and deviation. Both have "
        f"the same markers, and a dot for each of "
        f"{counted(min(map(len, runs.values())), 'run')}. The grey line is the loss of "
        f"guessing. Diverged runs: {told}.",
    )


def _draw_losses(ax, runs: Runs, name: str) -> None:
    for mode in MODES:
        found = [[math.inf if loss is None else loss for loss in run["losses"]] for run in runs[f"{name}-{mode}"]]
        length = min(map(len, found))  # a run whose loss is not finite ends early
        median = np.median([losses[:length] for losses in found], axis=0)
        ax.plot(median, label=mode, markevery=max(1, length // 8))
    _log_scale(ax)
    ax.set_title(_label(name))
    ax.legend()


def _label(name: str) -> str:
    """The optimizer and its base rate, as a figure names them."""
    optimizer, rate = name.split("-")
    return f"{ {'sgd': 'SGD', 'adam': 'Adam'}[optimizer] }, {rate}"


def _log_scale(ax) -> None:
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")


def _median_and_range(found: list[float]) -> tuple[float, tuple[float, float]]:
    middle = np.median(found)
    return middle, (middle - min(found), max(found) - middle)


def _draw_groups(ax, values: dict[str, list[float]], summary: Callable) -> None:
    """Draw a group for each optimizer, and in it a column for each mode.

    `summary` returns the middle of a column's runs, and the lengths of the bar below and above it. Each run is a dot.
    """
    for column, mode in enumerate(MODES):
        places = np.arange(len(OPTIMIZERS)) + 0.2 * (column - 1)
        found = [values[f"{name}-{mode}"] for name in OPTIMIZERS]
        middles, bars = zip(*map(summary, found), strict=True)
        ax.errorbar(places, middles, np.transpose(bars), linestyle="none", capsize=3, markersize=7, label=mode)
        for place, part in zip(places, found, strict=True):
            ax.plot(np.full(len(part), place), part, "k.", linestyle="none", alpha=0.4)
    ax.set_xticks(range(len(OPTIMIZERS)), map(_label, OPTIMIZERS))


CLAIM = Claim(
    id="C31",
    statement="A linearly scaled rate fails early in training, and warmup cures it.",
    source="S3, S4",
    lesson="06_techniques",
    variants=VARIANTS,
    seeds=5,
    settings={"images": 12_288, "epochs": 5, "batch_size": 64, "test_images": 5000},
    quick={"images": 1024, "epochs": 3, "batch_size": 16, "test_images": 300},
    run=run,
    judge=judge,
    picture=picture,
    caution="The quick run has one seed and small batches, and its warmup lasts a few updates only: too few for the "
    "network to get through its early steep phase at a low rate.",
)
