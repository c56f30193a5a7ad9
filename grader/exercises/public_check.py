"""Tries a learner's function on the public test cases of its exercise: the check cell in a lesson's notebook."""

import contextlib
import sys
from collections.abc import Callable

from grader.exercises import scoring
from grader.exercises.call_results import Outcome, of_call
from grader.exercises.test_cases import Sheet, public
from grader.sandbox.guest_scripts import call_functions


def check_public(id: str, function: Callable) -> float:
    """Try a function on the public probes of an exercise, print what came of it, and return the points earned.

    nbgrader takes a number that a cell returns for the points of that cell, and anything on stderr for a failure: what
    the function writes there is shown all the same.
    """
    sheet = public(id)
    with contextlib.redirect_stderr(sys.stdout):
        judged = scoring.judge(sheet, _tried(function, sheet), reveal=True)
    print(scoring.as_text(judged))
    return judged.points


def _tried(function: Callable, sheet: Sheet) -> list[Outcome]:
    """The outcomes of all calls. In a notebook its cell is tried by itself, as it is by the grader."""
    notebook = sys.modules["__main__"]
    shell = getattr(notebook, "get_ipython", lambda: None)()
    cells = shell.history_manager.input_hist_raw if shell else []
    source = next((cell for cell in reversed(cells) if f"def {sheet.function}(" in cell), None)
    try:
        made = call_functions.load(source, sheet.function) if source else function
        return [of_call(made, call) for call in sheet.calls]
    except call_functions.UnfitError as error:
        return [Outcome(none=str(error))] * len(sheet.calls)
    finally:
        sys.modules["__main__"] = notebook
