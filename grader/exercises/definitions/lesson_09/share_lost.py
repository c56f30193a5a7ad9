"""This exercise asks which share of a run's time is lost to checkpoints and to work that is done again."""

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase


class Run:
    """These are the arguments of a call."""

    def __init__(self, interval: float, writing: float, between: float, workers: int):
        self.interval, self.writing, self.between, self.workers = interval, writing, between, workers

    @property
    def written(self) -> float:
        """Return the share of the time that goes into the writing."""
        return self.writing / self.interval

    @property
    def again(self) -> float:
        """Return the share of the time in which work is done again: half an interval at each failure."""
        return self.interval / 2 * self.workers / self.between


def share_lost(interval: float, writing: float, between: float, workers: int) -> float:
    """Return the share of the time that is lost."""
    run = Run(interval, writing, between, workers)
    return run.written + run.again


MISTAKES = Mistakes(Run)


@MISTAKES.add("A failure of any worker ends the run, so more workers fail more often.")
def _one_worker(run: Run) -> float:
    return run.written + run.again / run.workers


@MISTAKES.add("More workers fail more often, and not less often.")
def _workers_the_other_way(run: Run) -> float:
    return run.written + run.again / run.workers**2


@MISTAKES.add("A failure costs half an interval on average, because it may come at any time in it.")
def _a_whole_interval(run: Run) -> float:
    return run.written + 2 * run.again


@MISTAKES.add("The writing is missing. In each interval it takes so many seconds.")
def _without_writing(run: Run) -> float:
    return run.again


@MISTAKES.add("The work that is done again after a failure is missing.")
def _without_failures(run: Run) -> float:
    return run.written


@MISTAKES.add("A checkpoint is written once in each interval, however many workers there are.")
def _each_worker_writes(run: Run) -> float:
    return run.workers * run.written + run.again


@MISTAKES.add("This is in per cent. A share of 5 % is 0.05.")
def _per_cent(run: Run) -> float:
    return 100 * (run.written + run.again)


ONE, SEVERAL = "one worker", "several workers"


def _case(draw: np.random.Generator, group: str) -> TestCase:
    workers = 1 if group == ONE else int(draw.integers(2, 1025))
    between = 3600.0 * int(draw.integers(2, 1000)) * workers
    writing = float(draw.integers(5, 120))
    interval = float(round(draw.uniform(0.5, 2) * (2 * writing * between / workers) ** 0.5))
    return TestCase(group, [{"interval": interval, "writing": writing, "between": between, "workers": workers}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [_case(draw, group) for group in (ONE, ONE, SEVERAL, SEVERAL, SEVERAL)]


EXERCISE = Compared(
    id="share_lost",
    title="What failures and checkpoints cost",
    signature="share_lost(interval: float, writing: float, between: float, workers: int) -> float",
    statement="""\
A run with so many `workers` writes a checkpoint every `interval` seconds. Training stands still for `writing` seconds
meanwhile. Each worker fails once in `between` seconds on average, at any time. Any failure ends the run, which goes on
from its last checkpoint. So on average, half of an interval is done again. Restarting takes no time here.

Which share of the run's time is lost, as a number like 0.05 for 5 %? Add both losses: the writing, and the work that is
done again.""",
    example=(600, 30, 10_800, 1),
    groups={ONE: 1, SEVERAL: 2},
    draw=_draw,
    reference=share_lost,
    mistakes=MISTAKES,
)
