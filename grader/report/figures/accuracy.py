"""Draws the test accuracy that the run reported, and the accuracy that the grader measured."""

from itertools import islice

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.grading.evidence import Evidence
from grader.report.figures.curves import MAX_UPDATES, finite, sampled
from grader.report.figures.picture import Picture, line_legend, new_axes, to_svg

MEASURED_STYLES = (("worker-2", "s"), ("worker-1", "D"))  # each measured accuracy has a colour and a mark


def draw(evidence: Evidence) -> Picture:
    """Draw the test accuracy by epoch, the target, and the accuracy that the grader measured."""
    title = "Test accuracy by epoch"
    expected = "The reported accuracy rises to above the target, and the grader measures the same."
    reported = finite(line.test_accuracy for line in islice(evidence.metrics or [], MAX_UPDATES)) * 100
    measured = _measured(evidence)
    if not len(reported) and not measured:
        return Picture("accuracy", title, expected, "There is neither a metrics.jsonl nor a model.pt that can be read.")
    target = evidence.profile.target * 100

    def paint(figure: Figure) -> None:
        axes = new_axes(figure, "epoch", "test accuracy, %")
        axes.plot(*sampled(reported), gid="worker-0", marker="o", markersize=4, linewidth=1.4, label="reported")
        axes.axhline(target, gid="target", linestyle="--", linewidth=1.2, label="target")
        _mark_measured(axes, max(1, len(reported)), measured)
        line_legend(figure, axes, ncols=2)

    observed = _observe(target, reported, measured)
    return Picture("accuracy", title, expected, observed, to_svg("accuracy", title, 250, paint))


def _measured(evidence: Evidence) -> dict[str, float]:
    """Return the accuracies of the checkpoint in percent. The result is empty if there is no checkpoint."""
    if not evidence.checkpoint:
        return {}
    visible, secret = evidence.checkpoint.visible, evidence.checkpoint.secret
    return {"measured, visible images": visible * 100, "measured, secret images": secret * 100}


def _mark_measured(axes: Axes, epoch: int, measured: dict[str, float]) -> None:
    """Draw a hollow mark at the last epoch for each measured accuracy."""
    for (gid, mark), (label, value) in zip(MEASURED_STYLES, measured.items(), strict=False):
        axes.plot([epoch], [value], mark, gid=gid, markersize=7, mfc="none", mew=1.8, label=label)


def _observe(target: float, reported: np.ndarray, measured: dict[str, float]) -> str:
    parts = [f"reported {reported[-1]:.2f}% after {len(reported):,} epochs"] if len(reported) else []
    parts += [f"{label} {value:.2f}%" for label, value in measured.items()]
    return f"Target {target:.2f}%; {'; '.join(parts)}."
