"""Figures of one style. Lines differ in dash and marker, so they can be told apart without colours.

Axes are labelled with units. Matplotlib is imported inside the functions that use it: workers import a claim's module
only for its experiment, and draw nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from cycler import cycler

from cifar.support import palette

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The lines of the course's colours. Where workers are drawn, the first four are workers 0 to 3, as in the drawings.
BLUE, BROWN, GREEN, YELLOW = (worker.line for worker in palette.WORKERS)
PURPLE, GREY, LIGHT = palette.GRADIENT.line, palette.WAITING.line, palette.COMPUTING.fill
COLOURS = (BLUE, BROWN, GREEN, YELLOW, PURPLE, GREY)
STYLE = {
    "axes.prop_cycle": cycler(color=COLOURS)
    + cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))])
    + cycler(marker=["o", "s", "^", "D", "v", "x"]),
    "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False,
    "font.size": 10, "legend.frameon": False, "lines.markersize": 4, "lines.linewidth": 1.5,
}  # fmt: skip
LOOKS = tuple(STYLE["axes.prop_cycle"])  # colour, dash and marker of each line, for lines that must look alike
SIZE = (8.0, 3.6)  # width and height in inches; the width is that of a page


def styled() -> AbstractContextManager:
    """A context in which a figure is drawn and saved in this style, whatever matplotlib's settings were before."""
    from matplotlib import style

    return style.context(["default", STYLE])


def counted(number: int, word: str) -> str:
    """The number and the word, in the plural unless the number is 1: `1 run`, `5 runs`."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def panels(*labels: tuple[str, str], size: tuple[float, float] = SIZE) -> tuple[Figure, list[Axes]]:
    """A figure with a row of panels, one for each pair of labels (x, y). The labels include units.

    `size` is the width and height in inches.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        found = list(figure.subplots(1, len(labels), squeeze=False)[0])
        for ax, (x, y) in zip(found, labels, strict=True):
            ax.set(xlabel=x, ylabel=y)
        return figure, found


def medians(found: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The median of each series, and its distances to the least and the largest value, as error bars need them."""
    middle = np.array([np.median(of) for of in found])
    return middle, [middle - [of.min() for of in found], [of.max() for of in found] - middle]


def axes(x: str, y: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """A figure with a single panel."""
    figure, (ax,) = panels((x, y), size=size)
    return figure, ax
