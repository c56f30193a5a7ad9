"""Draws one update from Horovod's timeline: when each gradient waits, and when it is exchanged."""

from itertools import pairwise
from pathlib import Path

from cifar.model import BootcampResNet, no_norm
from cifar.support import palette
from grader.report import timeline
from grader.report.timeline import Event
from lessons.cells.display.figures import axes, show

LOOKS = {  # the colour, the width in points, and the legend's words for each phase that is drawn
    "NEGOTIATE_ALLREDUCE": (palette.WAITING.line, 1.5, "waiting, for workers or for the exchange before"),
    "ALLREDUCE": (palette.GRADIENT.line, 5, "all-reduce"),
}


def one_update(trace: Path) -> list[Event]:
    """Return the phases of a usual update of `cifar_base.py`, from the timeline that rank 0 wrote to the file `trace`.

    The list is empty if the timeline has no whole update.
    """
    names = [name for name, _ in BootcampResNet(norm=no_norm).named_parameters()]
    events = [event for event in timeline.read(trace.read_bytes()) if event.tensor in names]
    return timeline.one_update([event for event in events if "CAST" not in event.phase])  # not the broadcast


def show_update(update: list[Event]) -> None:
    """Draw the phases of an update as one row for each gradient, in the order in which the gradients were ready."""
    tensors = list(dict.fromkeys(event.tensor for event in update if event.tensor))
    start = min(event.start for event in update)
    figure, ax = axes("time since the last exchange of the update before (ms)", "gradient of", size=(8.0, 4.4))
    for event in update:
        begin, end = 1000 * (event.start - start), 1000 * (event.end - start)
        if event.phase == timeline.COMPUTE:
            ax.axvspan(begin, end, color=palette.COMPUTING.fill, label="no exchange: computing")
        elif event.phase in LOOKS:
            colour, width, _ = LOOKS[event.phase]
            ax.hlines(tensors.index(event.tensor), begin, end, colors=colour, linewidth=width)
    last = 1000 * (last_announced(update) - start)
    ax.axvline(last, color=palette.INK, linewidth=1, linestyle="dashed")
    ax.annotate(" tail", (last, 0), color=palette.INK, fontsize=9, va="center")
    for colour, width, label in LOOKS.values():
        ax.hlines([], 0, 0, colors=colour, linewidth=width, label=label)
    ax.set_yticks(range(len(tensors)), tensors, fontsize=7)
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)
    show(
        figure,
        f"A row for each of {len(tensors)} gradients: a thin line while it waits, a thick one while it is exchanged. "
        "The gradients of the last layer come first.",
        _caption(update, len(tensors)),
    )


def last_announced(update: list[Event]) -> float:
    """The time of the last gradient's announcement, in seconds. The first worker that has it announces it."""
    return max(event.start for event in update if event.phase.startswith("NEGOTIATE"))


def _caption(update: list[Event], gradients: int) -> str:
    end = max(event.end for event in update)
    seconds = end - min(event.start for event in update)
    transfers = sorted((event for event in update if event.phase == "ALLREDUCE"), key=lambda event: event.start)
    exchanges = 1 + sum(later.start >= earlier.end for earlier, later in pairwise(transfers))
    waiting = sum(event.seconds for event in update if event.phase.startswith("NEGOTIATE")) / gradients
    tail = end - last_announced(update)
    return (
        f"One update, as rank 0 saw it. It took {1000 * seconds:.0f} ms. A gradient waited for {1000 * waiting:.0f} ms "
        f"on average. The {len(transfers)} gradients went out in {exchanges} exchanges. At the dashed line the "
        f"last gradient was announced. The tail after it took {1000 * tail:.0f} ms."
    )
