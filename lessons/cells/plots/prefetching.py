"""Draws two input pipelines of lesson 02, and beside them what a learner's function predicts."""

from collections.abc import Callable

from benchmarks.claims.lesson_02 import c19_input_pipeline as c19
from benchmarks.experiment.claim import Values
from benchmarks.experiment.plots import counted, styled
from lessons import saved_runs
from lessons.cells.display.figures import panels, show

PIPELINES = ("vectorised", c19.DECODED)
Rate = Callable[[list[float], int, bool], float]  # a learner's pipeline_rate


def show_prefetching(pipeline_rate: Rate) -> None:
    """Draw the stages of two saved pipelines, and their times without and with prefetching.

    `pipeline_rate` is a learner's function. It predicts the rate from the seconds of the preparing stages together, and
    those of the update.
    """
    runs = {name: saved_runs.runs("C19")[name] for name in PIPELINES}

    def rate(run: Values, overlapped: bool) -> float:
        *preparation, update = run["stages"].values()
        return pipeline_rate([sum(preparation), update], run["batch"], overlapped)

    with styled():
        figure, (left, right) = panels(
            ("time for one image (ms)", "pipeline"), ("time for one image (ms)", ""), size=(8.0, 2.6)
        )
        c19.draw_stages(left, runs)
        c19.draw_wholes(right, runs, rate)
        right.set(xlim=left.get_xlim(), yticklabels=[])  # both panels have the same pipelines and the same scale
        told = "; ".join(
            f"{name}: {c19.speeds(runs, name, 'in_turn')[0]:.0f} in turn, "
            f"{c19.speeds(runs, name, 'prefetched')[0]:.0f} prefetched"
            for name in runs
        )
        show(
            figure,
            "Left, stacked bars of the stages' times for one image, a bar for each pipeline. Right, bars of the time "
            "that the whole pipeline takes for one image, in turn and prefetched, and diamonds where your function "
            f"predicts it. In images a second: {told}.",
            f"Images a second, {counted(len(runs[c19.DECODED]), 'run')}: {told}. Diamonds: your function's prediction. "
            "A black line is one standard deviation to each side.",
        )
