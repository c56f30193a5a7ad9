"""Tries a learner's function on public test cases. The check cell in a lesson's notebook calls it."""

import contextlib
import os
import sys
from collections.abc import Callable

from grader.exercises import scoring
from grader.exercises.call_results import CallResult, of_call
from grader.exercises.test_cases import TestSuite, public
from grader.sandbox.guest_scripts import call_functions


class Points(float):
    """The points of a cell. nbgrader reads them from the cell's output, and the learner has read them in the score."""

    def _repr_html_(self) -> str:
        return ""


def check_public(id: str, function: Callable) -> float:
    """Try a function on the public test cases of an exercise, print the score, and return the points.

    nbgrader takes the number that a cell returns as the points of the cell. It takes text on stderr as a failure.
    Therefore this function shows on stdout what the learner's function writes to stderr. nbgrader's Validate button
    shows no output of a cell but its stderr, so there an answer that is not right is explained on stderr.
    """
    suite = public(id)
    with contextlib.redirect_stderr(sys.stdout):
        judged = scoring.score(suite, _tried(function, suite), reveal=True)
    validated = "NBGRADER_VALIDATING" in os.environ  # nbgrader's Validate sets it
    print(scoring.as_text(judged), file=sys.stderr if validated and judged.points < judged.max else sys.stdout)
    return Points(judged.points)


def _tried(function: Callable, suite: TestSuite) -> list[CallResult]:
    """Return the results of all calls. In a notebook, only the cell of the function is used, as the grader does."""
    notebook = sys.modules["__main__"]
    shell = getattr(notebook, "get_ipython", lambda: None)()
    cells = shell.history_manager.input_hist_raw if shell else []
    source = next((cell for cell in reversed(cells) if f"def {suite.function}(" in cell), None)
    try:
        made = call_functions.load(source, suite.function) if source else function
        return [of_call(made, call) for call in suite.calls]
    except call_functions.UnfitError as error:
        return [CallResult(none=str(error))] * len(suite.calls)
    finally:
        sys.modules["__main__"] = notebook
