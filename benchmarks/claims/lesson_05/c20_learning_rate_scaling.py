"""C20: should the learning rate change with the number of GPUs?

All numbers of workers have the same small per-worker batch. Each trains on the same images for the same epochs with
plain SGD, at each rate of a grid. The best rate is that with the lowest loss over the last epoch. A parabola
interpolates between the rates of the grid. C28's network has no batch normalisation, so K workers compute exactly what
one worker with a K times larger batch computes (C01). Here a single worker does so.

The noise scale suggests rate = top / (1 + critical / batch) (McCandlish et al. 2018, arXiv:1812.06162, section 2.2).
This formula is fitted. It is in proportion to the batch for small batches, and constant beyond the critical batch.
"""

import numpy as np
import torch

from benchmarks.claims.lesson_01.c28_critical_batch_size import network, one_thread
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import Difference, deviation, paired
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments.simulated_workers import Data, Recipe, train

SIZES = (1, 2, 4, 8, 16, 32)  # numbers of workers
HALF = 0.5  # the rate levels off if it doubles less than half as often as the number of workers


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the last epoch's mean training loss (nats), and the test accuracy (0 to 1) after it, at each rate."""
    batch, parts = _size(variant) * settings["batch_size"], data(settings)
    with one_thread():
        ends = [_end(batch, rate, seed, settings["epochs"], parts) for rate in settings["rates"]]
    return {
        "batch": batch,
        "rates": settings["rates"],
        "losses": [_bounded(end["train_loss"]) for end in ends],
        "accuracies": [end["test_accuracy"] for end in ends],
    }


def _end(batch: int, rate: float, seed: int, epochs: int, parts: Data) -> dict:
    recipe = Recipe(
        net=network, optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=rate),
        batch_size=batch, epochs=epochs, change=lambda images: images,
    )  # fmt: skip
    return train(recipe, parts, seed).last


def _bounded(loss: float) -> float:
    """The loss, but at most that of guessing. How far a run has diverged says nothing about the best rate."""
    return float(np.fmin(loss, np.log(10)))


def variant_of(size: int) -> str:
    """The name of the variant with `size` workers."""
    return f"workers-{size}"


def _size(variant: str) -> int:
    return int(variant.removeprefix("workers-"))


def best_rate(rates: list[float], losses: list[float]) -> float:
    """The rate of lowest loss: the vertex of a parabola in log(rate) through it and its neighbours.

    If the lowest loss is at an end of the grid, that rate is returned.
    """
    logs, lowest = np.log(rates), int(np.argmin(losses))
    if lowest in (0, len(losses) - 1):
        return rates[lowest]
    near = slice(lowest - 1, lowest + 2)
    curvature, slope, _ = np.polyfit(logs[near], np.array(losses)[near], 2)
    return float(np.exp(-slope / (2 * curvature)))


def best_rates(runs: Runs, size: int) -> list[float]:
    """The best rate of `size` workers, one value per seed."""
    return [best_rate(run["rates"], run["losses"]) for run in runs[variant_of(size)]]


def growth(runs: Runs, few: int, many: int) -> Difference:
    """How many times the best rate doubles from `few` to `many` workers."""
    return paired(np.log2(best_rates(runs, many)), np.log2(best_rates(runs, few)))


def top_and_critical(batches: list[int], rates: list[float]) -> tuple[float, float]:
    """Fit `top` and `critical` of rate = top / (1 + critical / batch) by least squares of the logarithms."""
    from scipy.optimize import curve_fit

    def model(logs: np.ndarray, top: float, critical: float) -> np.ndarray:
        return top - np.log1p(np.exp(critical - logs))

    logs = np.log(batches)
    limits = ([-20, logs.min() - 3], [20, logs.max() + 3])  # logarithms; beyond these the data do not determine the fit
    start = (np.log(max(rates)), logs.mean())
    found, _ = curve_fit(model, logs, np.log(rates), p0=start, bounds=limits)
    return float(np.exp(found[0])), float(np.exp(found[1]))


def fit(runs: Runs) -> tuple[float, float]:
    """The top rate and the critical batch, fitted to the geometric means of the best rates."""
    means = [float(np.exp(np.mean(np.log(best_rates(runs, size))))) for size in SIZES]
    return top_and_critical([runs[variant_of(size)][0]["batch"] for size in SIZES], means)


def judge(runs: Runs) -> Verdict:
    """The claim holds if the best rate grows with the number of workers beyond the noise.

    If it also levels off beyond the noise, the claim depends on the batch.
    """
    middle = SIZES[len(SIZES) // 2]
    whole, first, second = growth(runs, 1, SIZES[-1]), growth(runs, 1, middle), growth(runs, middle, SIZES[-1])
    text = (
        f"From 1 to {SIZES[-1]} workers the best rate doubles {whole.text()} times while the batch doubles "
        f"{np.log2(SIZES[-1]):.0f} times: {first.mean:.1f} of {np.log2(middle):.0f} up to {middle} "
        f"workers, {second.text(1, 1)} of {np.log2(SIZES[-1] / middle):.0f} beyond. "
        f"The fitted critical batch is {fit(runs)[1]:.0f}"
    )
    if not whole.seen:
        return Verdict("no difference seen", f"{text}.")
    if whole.mean < 0:
        return Verdict("fails", f"The best rate falls. {text}.")
    if second.high < HALF * np.log2(SIZES[-1] / middle):
        return Verdict("depends", f"On the batch: the rate grows with it up to about the critical batch. {text}.")
    return Verdict("holds", f"The best rate grows, and is not seen to level off. {text}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the training loss against the rate (left), and the best rate with its fit (right)."""
    figure, (left, right) = panels(
        ("rate", "training loss of the last epoch (nats)"), ("global batch (images)", "best rate")
    )
    for size in SIZES:
        values = runs[variant_of(size)]
        left.plot(values[0]["rates"], np.mean([run["losses"] for run in values], 0), label=f"{size}")
    batches = np.array([runs[variant_of(size)][0]["batch"] for size in SIZES])
    logs = [np.log(best_rates(runs, size)) for size in SIZES]
    best, spread = np.exp([log.mean() for log in logs]), np.exp([deviation(log) for log in logs])
    right.errorbar(
        batches, best, (best - best / spread, best * spread - best), capsize=3, linestyle="", label="measured"
    )
    top, critical = fit(runs)
    right.plot(batches, top / (1 + critical / batches), marker="", label=f"fit, critical batch {critical:.0f}")
    right.plot(batches, best[0] * batches / batches[0], marker="", label="the linear rule")
    left.set_xscale("log")
    rates = runs[variant_of(1)][0]["rates"]
    left.set_xticks(rates, [f"{rate:g}" for rate in rates], fontsize=8)
    left.minorticks_off()
    left.legend(title="workers", fontsize=8)
    right.set(xscale="log", yscale="log", ylim=(best.min() / 3, best.max() * 5))
    right.legend()
    return Picture(figure, _alt(runs), _caption(runs))


def _alt(runs: Runs) -> str:
    best = ", ".join(f"{np.exp(np.mean(np.log(best_rates(runs, size)))):.2g} for {size}" for size in SIZES)
    return (
        "Left: training loss against rate, one curve with a minimum for each number of workers. Right: the best rate "
        f"against the global batch on logarithmic axes, with a fitted curve that levels off. Best rates: "
        f"{best} workers."
    )


def _caption(runs: Runs) -> str:
    top, critical = fit(runs)
    return (
        f"Equal epochs, plain SGD. Right: the rate of lowest loss ("
        f"{counted(len(runs[variant_of(1)]), 'seed')}; bars: one "
        f"standard deviation), with {top:.2g} / (1 + {critical:.0f} / batch)."
    )


CLAIM = Claim(
    id="C20",
    statement="The learning rate should change with the number of GPUs.",
    source="S1",
    lesson="05_why_it_converges_worse",
    variants=tuple(variant_of(size) for size in SIZES),
    seeds=5,
    settings={
        "images": 8192,
        "epochs": 3,
        "batch_size": 8,
        "test_images": 1000,
        "rates": [0.02, 0.035, 0.06, 0.1, 0.17, 0.3, 0.5],
    },
    quick={"images": 2048, "epochs": 1, "test_images": 500, "rates": [0.03, 0.1, 0.3]},
    run=run,
    judge=judge,
    picture=picture,
    caution="Three rates are a coarse grid, and in one short epoch the largest batch makes eight updates.",
)
