"""Draws parts of the comparison of links for lesson 10: two of its ways alone, and a learner's predictions."""

from collections.abc import Callable

import numpy as np

from benchmarks.experiment import results, runner
from benchmarks.experiment.claim import Runs
from benchmarks.experiment.plots import COLOURS, LIGHT
from benchmarks.speed import get
from benchmarks.speed.comparisons.links import BATCHES, FAMILIES, IN_SHORT, LAYOUTS, RATES, WAYS, speeds
from benchmarks.speed.loop import gradient_bytes
from cluster.network import bits_per_second
from lessons.cells.display.figures import axes, panels, show

LAYOUT, BATCH = "2x2", min(BATCHES)  # two hosts with two workers each, and the images of a worker
IMAGES = BATCH * LAYOUTS[LAYOUT][0] * LAYOUTS[LAYOUT][1]  # of all workers
MEGABITS = {rate: bits_per_second(rate) / 1e6 for rate in RATES}  # Mbit/s
TICKS = [50, 100, 200, 500, 1000, 10_000], ["50", "100", "200", "500", "1,000", "10,000"]

BatchTime = Callable[[float, float, float, float, str], float]  # a learner's batch_time


def measured(runs: Runs, way: str) -> list[float]:
    """Return the images/s of a way, one value for each rate of the links."""
    return [float(np.median(speeds(runs, f"{LAYOUT}-{rate}-{BATCH}", way))) for rate in RATES]


def show_one_per_cent() -> None:
    """Draw the plain way and that which sends the largest values only, with the workers that exchange nothing."""
    _show(("topk",))


def show_family(family: str) -> None:
    """Draw the plain way and the ways of a family, a key of FAMILIES, with the workers that exchange nothing."""
    _show(FAMILIES[family])


def _show(ways: tuple[str, ...]) -> None:
    runs = runner.saved(get("links"), results.RESULTS / "speed" / "links").runs
    figure, ax = axes("rate of the links (Mbit/s)", "images/s of all workers", size=(7.0, 3.2))
    alone = measured(runs, "alone")
    ax.axhspan(min(alone), max(alone), color=LIGHT, label=WAYS["alone"])
    for way in ("group", *ways):
        ax.semilogx(MEGABITS.values(), measured(runs, way), label=WAYS[way], linewidth=3 if way == "group" else 1.5)
    ax.set_ylim(0, 1100)
    ax.set_xticks(*TICKS)
    ax.minorticks_off()
    ax.legend(loc="upper left", fontsize=8)
    ends = "; ".join(f"{WAYS[way]} {measured(runs, way)[-1]:.0f}" for way in ("group", *ways))
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
        said = [IMAGES / batch_time(forward, backward, latency, sending(rate), name) for rate in rates]
        ax.semilogx(rates, said, color=colour, marker="", label="predicted")
        found = measured(runs, way)
        ax.semilogx(MEGABITS.values(), found, "o", color=colour, linestyle="none", label="measured")
        ax.set(title=name, ylim=(0, 900))
        ax.set_xticks([50, 200, 1000, 10_000], ["50", "200", "1,000", "10,000"], fontsize=8)
        ax.minorticks_off()
        at = IMAGES / batch_time(forward, backward, latency, sending(MEGABITS["100mbit"]), name)
        told.append(f"{name} {at:.0f} and {found[RATES.index('100mbit')]:.0f}")
    parts[0].legend(loc="lower right", fontsize=8)
    text = f"At 100 Mbit/s, predicted and measured images/s: {'; '.join(told)}."
    show(figure, f"Four panels, each with a line and dots. {text}", text)


def sending(megabits: float) -> float:
    """Return the seconds in which a worker of a ring of four sends its bytes over a link of so many Mbit/s."""
    return 1.5 * gradient_bytes("resnet9") * 8 / (1e6 * megabits)
