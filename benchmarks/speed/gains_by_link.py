"""How many times as fast as the plain way each other way is, for each link: as measured, and as the model predicts it.

The model is not fitted to any setting of this picture: two hosts with two workers each are held out.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiment.claim import Picture, Runs
from benchmarks.experiment.plots import panels
from benchmarks.speed import crossings
from benchmarks.speed.comparisons import links
from cifar.support import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BATCH = min(links.BATCHES)
SETTINGS = links.over_rates(links.SHOWN, BATCH)
WAYS = [way for way in links.PREDICTED_WAYS if way != crossings.PLAIN]
FARTHEST = 4.0  # A way that is so many times as fast, or as slow, has the strongest colour.
DARK = 0.65  # On a field whose colour has more than this share of its full strength, the text is white.


def measured(runs: Runs) -> np.ndarray:
    """The gain of each of WAYS in each of SETTINGS, the median of the rounds. The shape is (ways, settings)."""
    return np.array([[np.median(links.gains(runs, setting, way)) for setting in SETTINGS] for way in WAYS])


def predicted(runs: Runs) -> np.ndarray:
    """The gains that the model predicts, the median of the models of all rounds. The shape is (ways, settings)."""
    models = [links.model(of_round) for of_round in links.rounds(runs)]
    gains = [
        [crossings.predicted_gains(made, links.SHOWN, BATCH, way, crossings.RATES) for way in WAYS] for made in models
    ]
    return np.median(gains, axis=0)


def picture(runs: Runs) -> Picture:
    """Two panels with a field for each way and link: the measured gains, and the predicted ones."""
    found, said = measured(runs), predicted(runs)
    figure, (left, right) = panels(*[("rate of the links (Mbit/s)", "")] * 2, size=(10.0, 3.8))
    _fields(left, found, "measured")
    _fields(right, said, "predicted")
    left.set_yticks(np.arange(len(WAYS)) + 0.5, [links.WAYS[way] for way in WAYS])
    right.set_yticks([])
    agree = int(((found >= crossings.WORTH) == (said >= crossings.WORTH)).sum())
    told = f"Measurement and prediction agree on whether a way pays in {agree} of {found.size} fields"
    return Picture(
        figure,
        f"Two tables of {len(WAYS)} ways and {len(SETTINGS)} links, measured and predicted. {told}.",
        f"How many times as fast as the plain way each way is, with {BATCH} images a worker. It pays in the fields "
        f"with bold numbers. {told}.",
    )


def _fields(ax: Axes, gains: np.ndarray, title: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    slower, faster = palette.WORKERS[1].fill, palette.WORKERS[0].fill
    colours = LinearSegmentedColormap.from_list("gains", (slower, "white", faster))
    strength = np.log(gains) / np.log(FARTHEST)
    ax.pcolormesh(strength, cmap=colours, vmin=-1, vmax=1, edgecolor="white")
    for row, column in itertools.product(*map(range, gains.shape)):
        weight = "bold" if gains[row, column] >= crossings.WORTH else "normal"
        colour = "white" if abs(strength[row, column]) > DARK else "black"
        told, look = f"{gains[row, column]:.2f}", {"fontsize": 9, "weight": weight, "color": colour}
        ax.text(column + 0.5, row + 0.5, told, ha="center", va="center", **look)
    ax.set(title=title)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(len(links.RATES)) + 0.5, [f"{rate:,.0f}" for rate in links.MEGABITS])
