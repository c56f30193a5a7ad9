"""Runs learners' functions on probes and judges what they answer.

`grade` is the trusted side's: the cells run in the sandbox, on probes drawn for a key that the learner does not know,
and only their answers come back. `check_public` is the learner's own, in the notebook: public probes, with answers.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from grader import exercises
from grader.exercises import judgement
from grader.exercises.judgement import Judgement
from grader.exercises.outcome import Outcome, of_call, read
from grader.exercises.sheet import Sheet, draw, public
from grader.inside import answer

if TYPE_CHECKING:
    from grader.isolation import Isolation

MAX_CELL_BYTES = 64 * 1024
CALL_SECONDS = 10
EXERCISE_SECONDS = 30
START_SECONDS = 60  # for Python and PyTorch, on a busy machine
ESCAPED = 7  # bytes at most for a byte of an outcome, as JSON in JSON


def grade(cells: Mapping[str, str], key: str, isolate: "Isolation") -> list[Judgement]:
    """Judge the cells of one learner, by exercise id, in one start of the sandbox; the same key gives the same result.

    A cell is all the code that the function needs, imports included. Raises KeyError for an unknown id, and
    isolation.IsolationError if the sandbox cannot be had; whatever a cell does is a result.
    """
    sheets = [draw(exercises.get(id), key) for id in cells]
    fitting = [sheet for sheet in sheets if len(cells[sheet.id].encode(errors="replace")) <= MAX_CELL_BYTES]
    judged = {given.id: given for given in _grade_fitting(fitting, cells, isolate)}
    too_large = f"the cell has more than {MAX_CELL_BYTES:,} bytes"
    return [judged.get(sheet.id) or judgement.refused(sheet, too_large) for sheet in sheets]


def _grade_fitting(sheets: list[Sheet], cells: Mapping[str, str], isolate: "Isolation") -> list[Judgement]:
    from grader import box  # here: a learner's kernel needs neither it nor the time that it takes to import

    if not sheets:
        return []
    source = {box.PROGRAM: Path(answer.__file__).read_bytes()}
    most = 1024 + ESCAPED * answer.LINE_BYTES * sum(len(sheet.calls) for sheet in sheets)
    seconds = START_SECONDS + EXERCISE_SECONDS * len(sheets)
    try:
        content = box.answer(source, {"questions.json": questions(sheets, cells)}, most, seconds, isolate)
    except box.BoxError as error:
        return [judgement.refused(sheet, f"the run of all cells together failed: {error}") for sheet in sheets]
    return judge(sheets, content)


def questions(sheets: list[Sheet], cells: Mapping[str, str]) -> bytes:
    """What goes into the sandbox: cells and arguments, nothing else of the sheets."""
    asked = [{"function": sheet.function, "source": cells[sheet.id], "calls": sheet.calls} for sheet in sheets]
    limits = {"call_seconds": CALL_SECONDS, "exercise_seconds": EXERCISE_SECONDS}
    return json.dumps({**limits, "exercises": asked}).encode()


def judge(sheets: list[Sheet], content: bytes) -> list[Judgement]:
    """Judge what came out of the sandbox, whatever it is."""
    try:
        answers = json.loads(content)
    except (ValueError, RecursionError):
        answers = []
    answers = answers if isinstance(answers, list) else []
    return [
        judgement.judge(sheet, _outcomes(sheet, answers[at] if at < len(answers) else []), reveal=False)
        for at, sheet in enumerate(sheets)
    ]


def _outcomes(sheet: Sheet, texts: object) -> list[Outcome]:
    """As many outcomes as the sheet has calls."""
    texts = texts if isinstance(texts, list) else []
    return [read(texts[at] if at < len(texts) else None) for at in range(len(sheet.calls))]


def check_public(id: str, function: Callable) -> float:
    """Try a function on the public probes of an exercise, print what came of it, and return the points earned.

    nbgrader takes a number that a cell returns for the points of that cell, and anything on stderr for a failure: what
    the function writes there is shown all the same.
    """
    sheet = public(id)
    with contextlib.redirect_stderr(sys.stdout):
        judged = judgement.judge(sheet, _tried(function, sheet), reveal=True)
    print(judgement.as_text(judged))
    return judged.points


def _tried(function: Callable, sheet: Sheet) -> list[Outcome]:
    """The outcomes of all calls. In a notebook its cell is tried by itself, as it is by the grader."""
    notebook = sys.modules["__main__"]
    shell = getattr(notebook, "get_ipython", lambda: None)()
    cells = shell.history_manager.input_hist_raw if shell else []
    source = next((cell for cell in reversed(cells) if f"def {sheet.function}(" in cell), None)
    try:
        made = answer.load(source, sheet.function) if source else function
        return [of_call(made, call) for call in sheet.calls]
    except answer.UnfitError as error:
        return [Outcome(none=str(error))] * len(sheet.calls)
    finally:
        sys.modules["__main__"] = notebook
