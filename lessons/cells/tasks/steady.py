"""Chooses the run with which lesson 02 goes on: the learner's own, or a saved one if the machine was too busy."""

from itertools import pairwise

from benchmarks.experiment.claim import Values
from lessons import saved_runs

FASTER = 1.5  # a larger batch is never so much faster than the next smaller one, unless another program was busy


def steady(measured: Values) -> tuple[str, Values]:
    """Return whose run the lesson goes on with, and that run of C16.

    It is `measured`, unless its times jump up and down. Then a line says so, and it is a saved run.
    """
    if any(small > FASTER * large for small, large in pairwise(measured["seconds"])):
        print("Your times jump up and down: another program was busy. We go on with our saved run.")
        return "the saved run", saved_runs.runs("C16")["updates"][0]
    return "your machine", measured
