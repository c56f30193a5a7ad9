"""Grades learners' functions. Their cells run in the sandbox, and only the results of the calls come back.

The test cases are drawn for a key that the learner does not know. Learners use `public_check` instead.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from grader import exercises
from grader.exercises import scoring
from grader.exercises.call_results import CallResult, read
from grader.exercises.scoring import Score
from grader.exercises.test_cases import TestSuite, draw
from grader.sandbox import run_in_sandbox
from grader.sandbox.guest_scripts import call_functions
from grader.sandbox.isolation import Isolation

MAX_CELL_BYTES = 64 * 1024  # bytes of one cell; a function of a few lines has far fewer
CALL_SECONDS = 10  # seconds for one call; a right function needs far less, so a longer call counts as hanging
EXERCISE_SECONDS = 30  # seconds for all calls of an exercise, so that slow calls do not delay a class
START_SECONDS = 60  # seconds in which Python and PyTorch start, even on a busy machine
ESCAPED = 7  # bytes; one byte of a result becomes at most so many, because a result is JSON inside JSON


def grade(cells: Mapping[str, str], key: str, isolation: type[Isolation]) -> list[Score]:
    """Grade the cells of one learner, given by exercise id, in one start of the sandbox.

    A cell must hold all the code that the function needs, imports included. The same key gives the same test cases.
    Raises KeyError for an unknown id, and isolation.IsolationError if the sandbox cannot start. A cell cannot cause an
    exception. Whatever it does, it gets a score.
    """
    suites = [draw(exercises.get(id), key) for id in cells]
    fitting = [suite for suite in suites if len(cells[suite.id].encode(errors="replace")) <= MAX_CELL_BYTES]
    judged = {given.id: given for given in _grade_fitting(fitting, cells, isolation)}
    too_large = f"the cell has more than {MAX_CELL_BYTES:,} bytes"
    return [judged.get(suite.id) or scoring.refused(suite, too_large) for suite in suites]


def _grade_fitting(suites: list[TestSuite], cells: Mapping[str, str], isolation: type[Isolation]) -> list[Score]:
    if not suites:
        return []
    source = {run_in_sandbox.PROGRAM: Path(call_functions.__file__).read_bytes()}
    most = 1024 + ESCAPED * call_functions.LINE_BYTES * sum(len(suite.calls) for suite in suites)
    seconds = START_SECONDS + EXERCISE_SECONDS * len(suites)
    try:
        content = run_in_sandbox.answer(
            source, {"calls.json": requested_calls(suites, cells)}, most, seconds, isolation
        )
    except run_in_sandbox.NoAnswerError as error:
        return [scoring.refused(suite, f"the run of all cells together failed: {error}") for suite in suites]
    return score(suites, content)


def requested_calls(suites: list[TestSuite], cells: Mapping[str, str]) -> bytes:
    """Return the input of the sandbox as JSON. It holds cells and arguments, and no right results."""
    asked = [{"function": suite.function, "source": cells[suite.id], "calls": suite.calls} for suite in suites]
    limits = {"call_seconds": CALL_SECONDS, "exercise_seconds": EXERCISE_SECONDS}
    return json.dumps({**limits, "exercises": asked}).encode()


def score(suites: list[TestSuite], content: bytes) -> list[Score]:
    """Score the content that came out of the sandbox, even if it is damaged."""
    try:
        answers = json.loads(content)
    except (ValueError, RecursionError):
        answers = []
    answers = answers if isinstance(answers, list) else []
    return [
        scoring.score(suite, _results(suite, answers[at] if at < len(answers) else []), reveal=False)
        for at, suite in enumerate(suites)
    ]


def _results(suite: TestSuite, texts: object) -> list[CallResult]:
    """Read one result for each call of the suite. A missing result becomes one without an answer."""
    texts = texts if isinstance(texts, list) else []
    return [read(texts[at] if at < len(texts) else None) for at in range(len(suite.calls))]
