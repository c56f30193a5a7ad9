"""Draws what a batch size costs, by the theory of lesson 01: updates to wait for, and images to pay for."""

from collections.abc import Callable

import numpy as np

from benchmarks.experiment.plots import PURPLE
from lessons.cells.display.figures import panels, show

Price = Callable[[float], tuple[float, float]]  # from a batch to updates and images, each times the least


def show_price(price: Price, border: float, per_gpu: int) -> None:
    """Draw the price of batches. The border, a batch size, is dotted, and 1, 4 and 64 GPUs with `per_gpu` are dots."""
    batches = np.geomspace(20, 40_000, 100)
    figure, parts = panels(
        ("images in a batch", "updates, times the least"), ("images in a batch", "images, times the least"),
        size=(8.0, 3.2),
    )  # fmt: skip
    for quantity, ax in enumerate(parts):
        ax.loglog(batches, [price(batch)[quantity] for batch in batches], color=PURPLE, marker="")
        ax.axvline(border, color="0.5", linestyle=":")
        for gpus in (1, 4, 64):
            dot = gpus * per_gpu, price(gpus * per_gpu)[quantity]
            ax.plot(*dot, "o", color=PURPLE)
            label, side = f"{gpus} GPUs" if gpus > 1 else "1 GPU", ("left", "right")[quantity]
            ax.annotate(label, dot, (0, 8), textcoords="offset points", horizontalalignment=side)
    show(
        figure,
        "Two curves over the batch size. The updates fall and then stay. The images stay and then rise.",
        f"Dotted: the noise scale, {border} images.",
    )
