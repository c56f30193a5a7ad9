"""Figures of one style: readable in grey (line, marker and lightness differ together), axes labelled with units.

Matplotlib is imported where it is used: workers, which import a claim's module for its experiment alone, draw nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cycler import cycler

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    "#0b3c5d",
    "#d1495b",
    "#2a9d8f",
    "#b87d14",
    "#6a4c93",
    "#888888",
)  # from dark to light and back, told in grey
STYLE = {
    "axes.prop_cycle": cycler(color=COLOURS)
    + cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1))])
    + cycler(marker=["o", "s", "^", "D", "v", "x"]),
    "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False,
    "font.size": 10, "legend.frameon": False, "lines.markersize": 4, "lines.linewidth": 1.5,
}  # fmt: skip
LOOKS = tuple(STYLE["axes.prop_cycle"])  # colour, line and marker of each line, where several lines look alike
SIZE = (8.0, 3.6)  # inches: a page's width


def panels(*labels: tuple[str, str], size: tuple[float, float] = SIZE) -> tuple[Figure, list[Axes]]:
    """A figure with one pair of axes beside another for each pair of labels (x, y), units included."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        found = list(figure.subplots(1, len(labels), squeeze=False)[0])
        for ax, (x, y) in zip(found, labels, strict=True):
            ax.set(xlabel=x, ylabel=y)
        return figure, found


def axes(x: str, y: str, size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    figure, (ax,) = panels((x, y), size=size)
    return figure, ax
