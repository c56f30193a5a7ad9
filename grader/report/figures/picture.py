"""A picture of the report has words, and an SVG element that takes its colours from the page's style sheet.

An artist that stands for something has a name, for instance `worker-0`. Matplotlib writes it as the id of the SVG
element, and the style sheet gives each name its colour in light and in dark mode.
"""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Patch

from cifar.support import palette
from grader.common.contract import WORKERS

WIDTH = 360  # units; a picture is about as wide as a phone, and letters are 10.5 units high

# These are the colours of the images' owners. They are the same in light and dark mode.
WORKER_COLORS = tuple(colour.fill for colour in palette.WORKERS)
SEVERAL_COLOR, NOBODY_COLOR = "#000000", "#ffffff"
NOBODY, SEVERAL, NO_IMAGE = -1, WORKERS, WORKERS + 1  # these numbers stand in place of an owner's rank

SETTINGS = {
    "svg.fonttype": "none", "text.parse_math": False, "axes.formatter.use_mathtext": False, "font.size": 10.5,
    "axes.labelsize": 10.5, "axes.titlesize": 10.5, "legend.fontsize": 10.5, "legend.frameon": False,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y",
    "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """`expected` says what a right run shows, and `observed` what this run shows. `svg` is None without data."""

    name: str
    title: str
    expected: str
    observed: str
    svg: Markup | None = None


def new_axes(figure: Figure, x_label: str, y_label: str) -> Axes:
    """Return axes that fill the figure, with whole numbers along x."""
    axes = figure.subplots()
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    for side in ("left", "bottom"):
        axes.spines[side].set_gid(f"frame-{side}")
    return axes


def name_legend(legend: Legend, names: list[str]) -> None:
    """Name the samples in the legend, so that each has the colour of what it explains."""
    for handle, name in zip(legend.legend_handles, names, strict=True):
        handle.set_gid(f"legend-{name}")


def line_legend(figure: Figure, axes: Axes, ncols: int, **options: float) -> None:
    """Explain the lines above the axes, in `ncols` columns. The options are those of matplotlib's legend."""
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside upper center", ncols=ncols, handlelength=2, **options)
    name_legend(legend, [handle.get_gid() for handle in handles])


def patch_legend(figure: Figure, patches: dict[str, Patch], loc: str) -> None:
    """Explain areas by patches of their colours. The keys are the patches' names."""
    legend = figure.legend(handles=list(patches.values()), loc=loc, ncols=3, handlelength=1, handleheight=1)
    name_legend(legend, list(patches))


def owner_pixels(owners: np.ndarray) -> np.ndarray:
    """Return the RGBA colours (uint8) of owners. An owner is NOBODY, a rank, SEVERAL workers, or NO_IMAGE."""
    table = matplotlib.colors.to_rgba_array([NOBODY_COLOR, *WORKER_COLORS, SEVERAL_COLOR, "none"])
    return (table * 255).astype(np.uint8)[owners - NOBODY]


def to_svg(name: str, label: str, height: float, paint: Callable[[Figure], None]) -> Markup:
    """Return what `paint` draws as an `<svg>` element, `height` units high. A screen reader reads `label` aloud."""
    with matplotlib.rc_context(SETTINGS | {"svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        paint(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(file.getvalue(), name, label)


def _inline(document: str, name: str, label: str) -> Markup:
    """Return an SVG document as an element of an HTML page. Its ids begin with `name`, so they are unique there."""
    body = document[document.index(">", document.index("<svg")) + 1 :]
    box = re.search(r'viewBox="([\d. ]+)"', document).group(1)
    body = re.sub(r"<style.*?</style>", "", body, count=1, flags=re.DOTALL)  # this style would apply to the whole page
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    start = '<svg viewBox="{}" role="img" aria-label="{}" aria-describedby="{}">'
    return Markup(start).format(box, label, name) + Markup(body)
