"""Draws a run: a lane for each worker, and the curve of the test accuracy."""

import math

from lessons.drawings.shapes import MARGIN, WIDTH, Drawing
from lessons.view.run import SILENT_SECONDS, Run, Worker

LANE, AXIS, LEGEND, CURVE = 46, 20, 26, 112  # heights
STRIP, STRIP_WIDTH = 150, 220  # where the past of a worker begins, and how wide it is
LOOKS = {
    "computing": "computing", "waiting": "waiting", "testing": "testing", "starting": "card", "ending": "card",
    "ended": "weights",
}  # fmt: skip
NAMES = {name: name for name in LOOKS if name not in ("starting", "ending")} | {"starting": "starting, ending"}


def draw(run: Run) -> str:
    """Return the picture as SVG, with a description for a screen reader."""
    lanes = LANE * len(run.workers)
    below = lanes + AXIS + LEGEND
    drawing = Drawing("A run", describe(run), below + CURVE + 40)
    for number, worker in enumerate(run.workers):
        _lane(drawing, worker, 8 + LANE * number, _has_failed(run, worker))
    _time(drawing, run, lanes)
    _legend(drawing, lanes + AXIS + 8)
    _curve(drawing, run, 8 + below)
    drawing.text(MARGIN, below + CURVE + 26, summary(run), anchor="start")
    return drawing.markup()


def summary(run: Run) -> str:
    """How far the run is, in words."""
    done = f"{len(run.accuracies)} of {run.epochs} epochs"
    if run.lost:
        lost = " and ".join(f"worker {worker.rank}" for worker in run.lost)
        return f"{done}; {lost} ended first, and so the run failed" if run.over else f"{done}; {lost} ended"
    if run.over:
        return f"{done}; the run has ended"
    return f"{done}, about {run.left:.0f} s left" if run.left is not None else done


def describe(run: Run) -> str:
    """The picture in words."""
    lanes = "; ".join(f"worker {worker.rank}: {words(worker)}, update {worker.updates}" for worker in run.workers)
    reached = f" Test accuracy {run.accuracies[-1]:.1f} %." if run.accuracies else ""
    return f"{summary(run)}. {lanes}.{reached}"


def words(worker: Worker) -> str:
    """What a worker does, in words."""
    if worker.doing == "ended" or worker.silent < SILENT_SECONDS or worker.doing == "starting":
        return worker.doing
    return f"{worker.doing} for {worker.silent:.0f} s"


def _has_failed(run: Run, worker: Worker) -> bool:
    return worker in run.lost or (bool(run.lost) and run.over)


def _lane(drawing: Drawing, worker: Worker, y: float, failed: bool) -> None:
    drawing.worker(MARGIN + 13, y + 14, worker.rank, 13)
    drawing.text(MARGIN + 34, y + 14, f"update {worker.updates}", anchor="start")
    for number, doing in enumerate(worker.past):
        width = STRIP_WIDTH / len(worker.past)
        drawing.box(STRIP + number * width, y + 3, width - 0.8, 22, LOOKS[doing], radius=0)
    right = STRIP + STRIP_WIDTH + 10
    drawing.text(right, y + 7, words(worker), "small", anchor="start")
    if not math.isnan(worker.loss):
        drawing.text(right, y + 23, f"loss {worker.loss:.2f}", "small", "muted", anchor="start")
    if failed and worker.last_line:
        drawing.text(STRIP, y + 36, _short(worker.last_line), "small", anchor="start")


def _time(drawing: Drawing, run: Run, y: float) -> None:
    """Write below the lanes how many seconds they show. They begin when the first worker begins to train."""
    drawing.text(STRIP, y + 6, "0 s", "small", "muted", anchor="start")
    seconds = f"{run.last_moment - run.first_moment:.1f} s"
    drawing.text(STRIP + STRIP_WIDTH, y + 6, seconds, "small", "muted", anchor="end")


def _legend(drawing: Drawing, y: float) -> None:
    """Name what the boxes of a lane say: what the worker did."""
    x = MARGIN
    for doing, name in NAMES.items():
        drawing.box(x, y + 2, 10, 12, LOOKS[doing], radius=0)
        drawing.text(x + 15, y + 8, name, "small", "muted", anchor="start")
        x += 26 + 7.6 * len(name)


def _short(line: str, characters: int = 44) -> str:
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def _curve(drawing: Drawing, run: Run, y: float) -> None:
    left, right, top, low = STRIP, WIDTH - MARGIN - 40, y + 12, y + CURVE - 22
    for line, word in enumerate(("test", "accuracy")):
        drawing.text(MARGIN, (top + low) / 2 - 8 + 16 * line, word, "small", anchor="start")
    for percent in (0, 50, 100):
        at = low - percent / 100 * (low - top)
        drawing.wire(left, at, right, at, width=0.6)
        drawing.text(left - 8, at, f"{percent} %", "small", "muted", anchor="end")
    drawing.text((left + right) / 2, low + 14, f"epochs, of {run.epochs}", "small", "muted")
    points = [
        (left + (number + 1) / run.epochs * (right - left), low - accuracy / 100 * (low - top))
        for number, accuracy in enumerate(run.accuracies)
    ]
    if len(points) > 1:
        drawing.wire(*(value for point in points for value in point), look="testing", width=2.5)
    for point in points:
        drawing.dot(*point, 3.5, "testing")
    if points:
        drawing.text(points[-1][0] + 8, points[-1][1] - 2, f"{run.accuracies[-1]:.1f}", "small", anchor="start")
