"""Draws why there is a best rate in a valley, and why noise lowers it. Lesson 05 derives both.

The valley has its bottom at 0. Its curvature and the distance at which a step begins are 1, so the best rate without
noise is 1, too.
"""

import numpy as np

from benchmarks.experiment.plots import LOOKS
from lessons.cells.display.figures import panels, show

STEPS = {0.5: (14, -12), 1.0: (-14, 6), 2.2: (12, 8)}  # rates of the left panel, and where their labels stand (points)
NOISE_SCALE = 64  # images, in the right panel
BATCHES = {
    16: (0.72, 1.8, "left"),
    64: (1.06, 1.3, "right"),
    640: (1.5, 0.7, "right"),
}  # images, and where their labels stand


def squared_distance(rate: np.ndarray, batch: int) -> np.ndarray:
    """Return the mean squared distance from the bottom after one step that begins at the distance 1."""
    return (1 - rate) ** 2 + rate**2 * NOISE_SCALE / batch


def best_rate(batch: int) -> float:
    """Return the rate at which the squared distance is smallest."""
    return 1 / (1 + NOISE_SCALE / batch)


def show_valley() -> None:
    """Draw steps at three rates in a valley, and how far noisy steps end from its bottom, for three batches."""
    figure, (left, right) = panels(
        ("distance from the bottom", "loss"), ("rate, times the best rate without noise", "mean squared distance")
    )
    _steps(left)
    rates = np.linspace(0, 1.6, 200)
    for (batch, (x, y, side)), look in zip(BATCHES.items(), LOOKS, strict=False):
        right.plot(rates, squared_distance(rates, batch), **look | {"marker": ""})
        lowest = best_rate(batch), squared_distance(best_rate(batch), batch)
        right.plot(*lowest, "o", color=look["color"], markersize=7)
        right.text(x, y, f"{batch} images", ha=side, color=look["color"])
    right.set_ylim(0, 2)
    best = ", ".join(f"{best_rate(batch):.2f} with {batch} images" for batch in BATCHES)
    show(
        figure,
        "Left: a parabola with three steps: one ends half-way to the bottom, one at the bottom, and one beyond it and "
        f"higher. Right: three curves, each with a lowest point. The lowest points are at the rates {best}.",
        f"Left: one step from the distance 1 at {', '.join(f'{rate:g}' for rate in STEPS)} times the best rate. "
        f"Right: after a noisy step, if the noise scale is {NOISE_SCALE} images. The best rates: {best}.",
    )


def _steps(ax) -> None:
    x = np.linspace(-1.35, 1.35, 200)
    ax.plot(x, x**2 / 2, color="0.6", marker="", linestyle="-")
    for (rate, place), look in zip(STEPS.items(), LOOKS, strict=False):
        end = 1 - rate
        ax.annotate("", (end, end**2 / 2), (1, 0.5), arrowprops={"arrowstyle": "->", "color": look["color"], "lw": 1.8})
        ax.annotate(f"{rate:g}", (end, end**2 / 2), place, textcoords="offset points", ha="center", color=look["color"])
    ax.plot(1, 0.5, "o", color="black", markersize=6)
    ax.annotate("start", (1, 0.5), (8, -3), textcoords="offset points")
