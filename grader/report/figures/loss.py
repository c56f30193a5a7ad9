"""Draws the training loss of each worker by update."""

from itertools import islice

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.common.contract import WORKERS
from grader.grading.evidence import Evidence
from grader.report.figures.curves import (
    MAX_UPDATES,
    any_finite,
    finite,
    in_words,
    limited_updates,
    mean,
    means,
    missing_values,
    sampled,
)
from grader.report.figures.picture import Picture, line_legend, new_axes, to_svg

LINE_STYLES = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"))  # the dashes and marks differ in grey print too
NO_LOSS = "No worker's own loss was seen: none of PyTorch's loss modules computed one that is a number."


def draw(evidence: Evidence) -> Picture:
    """Draw the training loss by update, with one line per worker."""
    title = "Training loss by update"
    expected = "Workers see different images but train one network: four lines that fall together."
    curves = [finite(update.loss for update in limited_updates(worker)) for worker in evidence.workers]
    if not any_finite(curves):
        return _reported_loss(evidence)

    def paint(figure: Figure) -> None:
        axes = new_axes(figure, "update", "loss")
        for rank, curve in enumerate(curves):
            _line(axes, rank, *means(curve))
        line_legend(figure, axes, ncols=WORKERS, columnspacing=1)

    ends = [in_words(mean(curve[-max(1, len(curve) // 10) :]), ".3g") for curve in curves]
    observed = f"Mean over the last tenth of the updates, worker 0 to {WORKERS - 1}: {', '.join(ends)}."
    return Picture("loss", title, expected, observed + missing_values(curves), to_svg("loss", title, 250, paint))


def _reported_loss(evidence: Evidence) -> Picture:
    """Draw the reported training loss by epoch. This is for a run in which no loss module computed a worker's loss."""
    title, expected = "Training loss by epoch", "The loss falls."
    curve = finite(line.train_loss for line in islice(evidence.metrics or [], MAX_UPDATES))
    if not any_finite([curve]):
        return Picture("loss", title, expected, NO_LOSS)

    def paint(figure: Figure) -> None:
        axes = new_axes(figure, "epoch", "loss, as reported")
        axes.plot(*sampled(curve), gid="worker-0", marker="o", markersize=4, linewidth=1.4)

    first, last = in_words(curve[0], ".3g"), in_words(curve[-1], ".3g")
    observed = f"{NO_LOSS} metrics.jsonl reports {first} after epoch 1, {last} at the end."
    return Picture("loss", title, expected, observed, to_svg("loss", title, 230, paint))


def _line(axes: Axes, rank: int, x: np.ndarray, y: np.ndarray) -> None:
    """Draw the line of a worker, with about six marks that do not lie on those of the other workers."""
    dashes, mark = LINE_STYLES[rank]
    marked = (rank * len(x) // 24, max(1, len(x) // 6))
    axes.plot(
        x, y, dashes, gid=f"worker-{rank}", linewidth=1.4, marker=mark, markevery=marked, markersize=4,
        label=f"worker {rank}",
    )  # fmt: skip
