"""Draws what a learner's own functions of lesson 03 do: the steps of a ring, and the losses of three trainings.

show_ring(ring_step, 4)
show_losses({"one process": losses, ...}, apart)
"""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from lessons.cells.display.figures import axes, panels, show

Chunks = list[list[list[float]]]  # the numbers of each chunk of each worker


def show_ring(ring_step: Callable[[Chunks, int], Chunks], workers: int) -> None:
    """Draw the first half of a ring all-reduce: after each step, the numbers in each worker's chunks.

    Each worker begins with the number 1 in every chunk. So a number says how many workers a chunk has collected.
    """
    state: Chunks = [[[1.0] for _ in range(workers)] for _ in range(workers)]
    figure, every = panels(*[("worker", "chunk")] * workers, size=(8, 2.6))
    for step, ax in enumerate(every, -1):
        state = ring_step(state, step) if step >= 0 else state
        _draw(ax, np.array(state)[:, :, 0], step)
    complete = np.array(state)[:, :, 0] == workers
    one_each = f", one on each of {workers} workers" if (complete.sum(1) == 1).all() else ""
    show(
        figure,
        "A grid after each step, with a column for each worker and a row for each chunk. A number says how many "
        f"workers the chunk has collected. At the end {complete.sum()} are {workers}.",
        f"After {workers - 1} steps {complete.sum()} chunks are complete{one_each}.",
    )


def show_losses(losses: dict[str, Sequence[float]], apart: float) -> None:
    """Draw the losses of several trainings by update, the first one as a broad line below the others.

    `apart` says how far the weights are apart at the end, relative to their length.
    """
    figure, ax = axes("update", "training loss (nats)", size=(8, 3))
    for number, (name, values) in enumerate(losses.items()):
        below = {"lw": 5, "alpha": 0.3, "marker": ""} if number == 0 else {}
        ax.plot(range(1, len(values) + 1), values, label=name, **below)
    ax.legend()
    first, *others = losses.values()
    together = all(np.allclose(first, other, atol=0.01) for other in others)
    told = f"The weights are at most {apart:.0e} apart at the end, relative to their length."
    if together:
        told += f" Each way adds its numbers in another order, and {len(first)} updates let the rounding grow."
    show(
        figure,
        f"Lines over {len(first)} updates{' that cannot be told apart' if together else ''}, the first one from "
        f"{first[0]:.2f} to {first[-1]:.2f}.",
        told,
    )


def _draw(ax: Axes, numbers: np.ndarray, step: int) -> None:
    size = len(numbers)
    ax.imshow(numbers.T, cmap="Greys", vmin=0, vmax=size)
    ax.set(title=f"after step {step}" if step >= 0 else "before", xticks=range(size), yticks=range(size))
    ax.grid(visible=False)
    for (worker, chunk), number in np.ndenumerate(numbers):
        colour = "white" if number > size / 2 else "black"
        ax.text(worker, chunk, f"{number:.0f}", ha="center", va="center", color=colour)
