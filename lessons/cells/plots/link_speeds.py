"""Draws parts of the comparisons of links and of savings for lesson 10, and a learner's predictions."""

from collections.abc import Callable

import numpy as np

from benchmarks.experiment.claim import Runs
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import COLOURS
from benchmarks.speed import equal_time
from benchmarks.speed.comparisons import links, savings
from benchmarks.speed.comparisons.links import (
    BATCHES,
    FAMILIES,
    IN_SHORT,
    LAYOUTS,
    MEGABITS,
    RATES,
    SHOWN,
    WAYS,
    by_rate,
    draw_ways,
    ring_of_four,
)  # fmt: skip
from lessons import saved_runs
from lessons.cells.display.figures import axes, panels, show

BATCH = min(BATCHES)  # images of a worker
IMAGES = BATCH * LAYOUTS[SHOWN][0] * LAYOUTS[SHOWN][1]  # of all workers

BatchTime = Callable[[float, float, float, float, str], float]  # a learner's batch_time


def show_one_per_cent() -> None:
    """Draw the plain way and that which sends the largest values only, with the workers that exchange nothing."""
    _show(("topk",))


def show_family(family: str) -> None:
    """Draw the plain way and the ways of a family, a key of FAMILIES, with the workers that exchange nothing."""
    _show(FAMILIES[family])


def _show(ways: tuple[str, ...]) -> None:
    runs = saved_runs.runs("links")
    figure, ax = axes("rate of the links (Mbit/s)", "images/s of all workers", size=(7.0, 3.2))
    draw_ways(ax, runs, ways)
    ends = "; ".join(f"{WAYS[way]} {by_rate(runs, way)[-1]:.0f}" for way in ("group", *ways))
    show(
        figure,
        f"Images/s against the rate of the links. At 50 Mbit/s: {ends}.",
        f"Two hosts with two workers each, {BATCH} images a worker. Images/s at 50 Mbit/s: {ends}.",
    )


def show_predictions(runs: Runs, batch_time: BatchTime, forward: float, backward: float, latency: float) -> None:
    """Draw what a learner's function predicts for four ways, as lines, and what was measured, as dots.

    The three times are in seconds: of a forward pass, of a backward pass, and of all messages of an exchange.
    """
    figure, parts = panels(*[("Mbit/s", "images/s")] * len(IN_SHORT), size=(10.0, 3.0))
    rates = np.geomspace(50, 10_000, 60)
    top = 1.15 * max(IMAGES / (forward + backward), *(max(by_rate(runs, way)) for way in IN_SHORT.values()))
    told = []
    for ax, (name, way), colour in zip(parts, IN_SHORT.items(), COLOURS, strict=False):
        said = [IMAGES / batch_time(forward, backward, latency, ring_of_four(1e6 * rate), name) for rate in rates]
        ax.semilogx(rates, said, color=colour, marker="", label="predicted")
        found = by_rate(runs, way)
        ax.semilogx(MEGABITS, found, "o", color=colour, linestyle="none", label="measured")
        ax.set(title=name, ylim=(0, top))
        ax.set_xticks([50, 200, 1000, 10_000], ["50", "200", "1,000", "10,000"], fontsize=8)
        ax.minorticks_off()
        at = IMAGES / batch_time(forward, backward, latency, ring_of_four(100e6), name)
        told.append(f"{name} {at:.0f} and {found[RATES.index('100mbit')]:.0f}")
    parts[0].legend(loc="lower right", fontsize=8)
    text = f"At 100 Mbit/s, predicted and measured images/s: {'; '.join(told)}."
    show(figure, f"Four panels, each with a line and dots. {text}", text)


def show_training(rates: tuple[str, ...]) -> None:
    """Draw the test accuracy of ways that send fewer bytes over the seconds of training: a panel for each rate."""
    trained, timed = saved_runs.runs("savings"), saved_runs.runs("links")
    figure, parts = panels(*[("seconds", "test accuracy (%)")] * len(rates), size=(10.0, 3.6))
    for ax, rate in zip(parts, rates, strict=True):
        for way, name in savings.WAYS.items():
            found = 100 * savings.accuracies(trained, way)
            ends = equal_time.epoch_seconds(timed, rate, way) * np.arange(1, found.shape[1] + 1)
            ax.plot(ends, found.mean(0), label=name, **({"linewidth": 3} if way == savings.EXACT else {}))
        ax.set(title=links.in_words(rate), xlim=(0, None))
    parts[0].legend(fontsize=8, loc="lower right")
    ends = "; ".join(
        f"{name} {mean_std(savings.accuracies(trained, way)[:, -1], 100, 1)} %" for way, name in savings.WAYS.items()
    )
    seeds = len(trained[savings.EXACT])
    show(
        figure,
        f"Test accuracy over seconds on a fast and on a slow link. After the last epoch: {ends}.",
        f"Four workers, mean of {seeds} seeds. After the last epoch, with the standard deviation: {ends}.",
    )
