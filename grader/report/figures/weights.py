"""Draws whether the workers have equal weights after each update."""

from itertools import pairwise, zip_longest

import numpy as np
from matplotlib.figure import Figure

from grader.common.contract import WORKERS
from grader.grading.evidence import Evidence
from grader.report.figures.curves import MAX_POINTS, limited_updates
from grader.report.figures.picture import NOBODY, Picture, new_axes, owner_pixels, to_svg
from grader.run.worker_log import Worker


def draw(evidence: Evidence) -> Picture:
    """Draw hashes of the workers' weights as a strip with one column per update and one row per worker."""
    title = "Weights: equal on all workers?"
    expected = (
        "One column per update, one row per worker. Workers with equal weights have one colour: all rows dark blue."
    )
    columns = _hash_groups(evidence.workers)
    if not columns:
        return Picture("weights", title, expected, "No worker wrote down a hash of its weights.")
    strip = np.array(_binned(columns, MAX_POINTS)).T

    def paint(figure: Figure) -> None:
        axes = new_axes(figure, "update (0: before the first)", "")
        extent = (-0.5, len(columns) - 0.5, WORKERS - 0.5, -0.5)
        axes.imshow(owner_pixels(strip), interpolation="none", aspect="auto", extent=extent)
        axes.set_yticks(range(WORKERS), [f"worker {rank}" for rank in range(WORKERS)])
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        for row in range(1, WORKERS):
            axes.axhline(row - 0.5, linewidth=3, gid=f"gap-{row}")

    return Picture("weights", title, expected, _observe(columns), to_svg("weights", title, 150, paint))


def _hash_groups(workers: list[Worker]) -> list[list[int]]:
    """Return for each update and worker the lowest rank with the same hash, or NOBODY for a worker without a hash.

    The first entry is for the weights before the first update.
    """
    if not any(worker.first for worker in workers):
        return []
    starts = [worker.first.start if worker.first else None for worker in workers]
    hashes = zip_longest(*([update.weights for update in limited_updates(worker)] for worker in workers))
    return [[NOBODY if value is None else column.index(value) for value in column] for column in (starts, *hashes)]


def _binned(columns: list[list[int]], max_columns: int) -> list[list[int]]:
    """Return at most `max_columns` columns, one for each group of columns.

    It is the first column of the group in which the workers differ. If they differ in none, it is the group's first.
    """
    edges = np.linspace(0, len(columns), min(max_columns, len(columns)) + 1).astype(int)
    groups = [columns[start:stop] for start, stop in pairwise(edges)]
    return [next((column for column in group if any(column)), group[0]) for group in groups]


def _observe(columns: list[list[int]]) -> str:
    """Return a sentence on the first update after which the workers' weights differ."""
    parted = next((update for update, column in enumerate(columns) if any(column)), None)
    if parted is None:
        return f"Equal on all workers before the first and after each of {len(columns) - 1:,} updates."
    silent = ", ".join(str(rank) for rank, group in enumerate(columns[parted]) if group == NOBODY)
    if silent and parted == 0:
        return f"Worker {silent} wrote nothing."
    if silent:
        return f"Equal on all workers until worker {silent} stopped after update {parted - 1:,}."
    different = ", ".join(str(rank) for rank, group in enumerate(columns[parted]) if group)
    when = f"After update {parted:,}" if parted else "Before the first update"
    return f"{when} worker {different} had other weights than worker 0."
