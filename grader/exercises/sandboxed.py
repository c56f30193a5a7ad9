"""Grades learners' functions: their cells run in the sandbox, and only what the functions answer comes back.

The test cases are drawn for a key that the learner does not know. `public_check` is what the learner runs.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from grader import exercises
from grader.exercises import scoring
from grader.exercises.call_results import Outcome, read
from grader.exercises.scoring import Judgement
from grader.exercises.test_cases import Sheet, draw
from grader.sandbox import run_in_sandbox
from grader.sandbox.guest_scripts import call_functions
from grader.sandbox.isolation import Isolation

MAX_CELL_BYTES = 64 * 1024
CALL_SECONDS = 10
EXERCISE_SECONDS = 30
START_SECONDS = 60  # for Python and PyTorch, on a busy machine
ESCAPED = 7  # bytes at most for a byte of an outcome, as JSON in JSON


def grade(cells: Mapping[str, str], key: str, isolation: type[Isolation]) -> list[Judgement]:
    """Judge the cells of one learner, by exercise id, in one start of the sandbox; the same key gives the same result.

    A cell is all the code that the function needs, imports included. Raises KeyError for an unknown id, and
    isolation.IsolationError if the sandbox cannot be had; whatever a cell does is a result.
    """
    sheets = [draw(exercises.get(id), key) for id in cells]
    fitting = [sheet for sheet in sheets if len(cells[sheet.id].encode(errors="replace")) <= MAX_CELL_BYTES]
    judged = {given.id: given for given in _grade_fitting(fitting, cells, isolation)}
    too_large = f"the cell has more than {MAX_CELL_BYTES:,} bytes"
    return [judged.get(sheet.id) or scoring.refused(sheet, too_large) for sheet in sheets]


def _grade_fitting(sheets: list[Sheet], cells: Mapping[str, str], isolation: type[Isolation]) -> list[Judgement]:
    if not sheets:
        return []
    source = {run_in_sandbox.PROGRAM: Path(call_functions.__file__).read_bytes()}
    most = 1024 + ESCAPED * call_functions.LINE_BYTES * sum(len(sheet.calls) for sheet in sheets)
    seconds = START_SECONDS + EXERCISE_SECONDS * len(sheets)
    try:
        content = run_in_sandbox.answer(source, {"questions.json": questions(sheets, cells)}, most, seconds, isolation)
    except run_in_sandbox.NoAnswerError as error:
        return [scoring.refused(sheet, f"the run of all cells together failed: {error}") for sheet in sheets]
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
        scoring.judge(sheet, _outcomes(sheet, answers[at] if at < len(answers) else []), reveal=False)
        for at, sheet in enumerate(sheets)
    ]


def _outcomes(sheet: Sheet, texts: object) -> list[Outcome]:
    """As many outcomes as the sheet has calls."""
    texts = texts if isinstance(texts, list) else []
    return [read(texts[at] if at < len(texts) else None) for at in range(len(sheet.calls))]
