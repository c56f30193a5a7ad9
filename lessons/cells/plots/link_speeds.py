"""Draws parts of the comparison of links for lesson 10: two of its ways alone, and a learner's predictions."""

from collections.abc import Callable

import numpy as np

from benchmarks.experiment.claim import Runs
from benchmarks.experiment.plots import COLOURS
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
    told = []
    for ax, (name, way), colour in zip(parts, IN_SHORT.items(), COLOURS, strict=False):
        said = [IMAGES / batch_time(forward, backward, latency, ring_of_four(1e6 * rate), name) for rate in rates]
        ax.semilogx(rates, said, color=colour, marker="", label="predicted")
        found = by_rate(runs, way)
        ax.semilogx(MEGABITS, found, "o", color=colour, linestyle="none", label="measured")
        ax.set(title=name, ylim=(0, 900))
        ax.set_xticks([50, 200, 1000, 10_000], ["50", "200", "1,000", "10,000"], fontsize=8)
        ax.minorticks_off()
        at = IMAGES / batch_time(forward, backward, latency, ring_of_four(100e6), name)
        told.append(f"{name} {at:.0f} and {found[RATES.index('100mbit')]:.0f}")
    parts[0].legend(loc="lower right", fontsize=8)
    text = f"At 100 Mbit/s, predicted and measured images/s: {'; '.join(told)}."
    show(figure, f"Four panels, each with a line and dots. {text}", text)
