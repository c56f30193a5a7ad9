"""Draws the learning rate of each worker by update."""

import math

import numpy as np
from matplotlib.figure import Figure

from grader.common.contract import WORKERS
from grader.grading.evidence import Evidence
from grader.report.figures.curves import any_finite, finite, in_words, limited_updates, missing_values, sampled
from grader.report.figures.picture import Picture, line_legend, new_axes, to_svg


def draw(evidence: Evidence) -> Picture:
    """Draw the learning rate by update. Equal rates lie on each other like the bands of a ribbon."""
    title = "Learning rate by update"
    expected = "All workers follow one schedule, drawn as one ribbon: it climbs during warmup, then falls."
    curves = [finite(_of_most_weights(update.lr) for update in limited_updates(worker)) for worker in evidence.workers]
    if not any_finite(curves):
        return Picture("rate", title, expected, "No rate was seen: no worker made an update.")

    def paint(figure: Figure) -> None:
        axes = new_axes(figure, "update", "learning rate")
        for rank, curve in enumerate(curves):
            axes.plot(*sampled(curve), gid=f"worker-{rank}", linewidth=7.5 - 2 * rank, label=f"worker {rank}")
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
        line_legend(figure, axes, ncols=WORKERS, columnspacing=1)

    observed = _compare(curves) + missing_values(curves)
    return Picture("rate", title, expected, observed, to_svg("rate", title, 250, paint))


def _of_most_weights(rates: list[float]) -> float:
    return rates[0] if rates else math.nan


def _compare(curves: list[np.ndarray]) -> str:
    """Describe the rates of the first worker that has any, and say whether all workers have the same rates."""
    rank = next(rank for rank, curve in enumerate(curves) if np.isfinite(curve).any())
    curve = curves[rank]
    peak = int(np.nanargmax(curve))
    schedule = (
        f"Worker {rank}: {in_words(curve[0])} at update 1, highest {in_words(curve[peak])} at update {peak + 1}, "
    )
    schedule += f"{in_words(curve[-1])} at the last."
    shortest = min(map(len, curves))
    together = np.array([curve[:shortest] for curve in curves])
    unequal = ~np.isclose(together, together[0], equal_nan=True).all(axis=0)
    if unequal.any():
        return f"{schedule} The workers' rates differ from update {unequal.argmax() + 1} on."
    return f"{schedule} All workers have the same rate at each of {shortest:,} updates." if shortest else schedule
