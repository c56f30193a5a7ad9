"""Draws a learner's own small run over the figure of the full experiment, as stars and outlines in the same colours."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

OWN = {
    "marker": "*",
    "markersize": 9,
    "markeredgecolor": "black",
    "markeredgewidth": 0.6,
    "zorder": 5,
    "clip_on": False,
}
STARS = 8  # about so many stars on a curve, however many points it has: more would hide each other
Points = tuple[np.ndarray, object]  # points of shape (points, 2), and their colour


def draw_over(full: Figure, own: Figure) -> str:
    """Draw what `own` shows into `full`, panel by panel, where both have the same axes.

    Return a sentence that says how. It is empty if nothing fits.

    Lines without markers are theory in the pictures of the claims, and are left out. So is what both figures have in
    common. A panel whose two axes have the same scale is a map. Its paths would hide each other, so it is left out.
    """
    drawn: set[str] = set()
    for ax, mine in zip(full.axes, own.axes, strict=False):
        if _labels(ax) == _labels(mine) and ax.get_aspect() == "auto":
            drawn |= _draw(ax, mine)
    marks = {"stars": "stars in the same colours", "outlines": "thick outlines"}
    told = " and ".join(words for mark, words in marks.items() if mark in drawn)
    return f"{told.capitalize()}: your own small run." if told else ""


def _labels(ax: Axes) -> tuple[str, ...]:
    return ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale(), *_names(ax)


def _names(ax: Axes) -> list[str]:
    """The words at the ticks of an axis of categories. They tell what a bar or a row stands for."""
    ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    return [text.get_text() for text in ticks if not _is_number(text.get_text())]


def _is_number(text: str) -> bool:
    return not any(letter.isalpha() for letter in text) or text.startswith("$")


def _draw(ax: Axes, mine: Axes) -> set[str]:
    """Draw the points of `mine` as stars, and its bars as outlines. Return which of the two it has."""
    there = [found for found, _ in _points(ax)]
    new = [pair for pair in _points(mine) if not any(np.array_equal(pair[0], other) for other in there)]
    bars = [bar for container in mine.containers if isinstance(container, BarContainer) for bar in container]
    limits = ax.get_xlim(), ax.get_ylim()
    for found, colour in new:
        style = {"linestyle": "none"}
        if _is_curve(found):
            style = {"linestyle": ":", "linewidth": 1, "markevery": max(1, len(found) // STARS)}
        ax.plot(*found.T, color=colour, **OWN, **style)
    outlines = [bar.get_bbox().corners()[[0, 1, 3, 2, 0]] for bar in bars]
    for outline in outlines:
        ax.plot(*outline.T, color="black", linestyle="-", marker="", linewidth=1.5, zorder=5)
    _widen(ax, *limits, [*(found for found, _ in new), *outlines])
    return {mark for mark, found in (("stars", new), ("outlines", bars)) if found}


def _points(ax: Axes) -> Iterator[Points]:
    """Yield each line with markers, and each cloud of points."""
    whiskers = {
        id(line) for container in ax.containers if isinstance(container, ErrorbarContainer) for line in container[1]
    }
    for line in ax.get_lines():
        if id(line) not in whiskers and _is_data(line, ax) and line.get_marker() not in ("", "None", "none", None):
            yield np.asarray(line.get_xydata(), dtype=float), line.get_color()
    for cloud in ax.collections:
        if isinstance(cloud, PathCollection):
            yield np.asarray(cloud.get_offsets(), dtype=float), cloud.get_facecolor()[0]


def _is_data(line: Line2D, ax: Axes) -> bool:
    return line.get_transform() == ax.transData


def _is_curve(points: np.ndarray) -> bool:
    """Whether points follow each other from left to right, as those of a curve do."""
    return len(points) > 1 and bool((np.diff(points[:, 0]) > 0).all())


def _widen(ax: Axes, x: tuple[float, float], y: tuple[float, float], points: list[np.ndarray]) -> None:
    """Keep the limits that the full figure had, and widen them where the run's points lie outside."""
    for set_limits, limits, place in ((ax.set_xlim, x, 0), (ax.set_ylim, y, 1)):
        values = np.concatenate([found[:, place] for found in points] or [[]])
        values = values[np.isfinite(values)]
        low, high = sorted(limits)
        inside = min([low, *values]), max([high, *values])
        set_limits(inside if limits[0] <= limits[1] else inside[::-1])
