"""Grades one student's submission for one assignment, and enters it into the gradebook.

The student's answers are put into the released notebook. Hidden test cases score the exercises, and the harness's
report judges the four-worker program. Both scores become the outputs of the notebook's check cells, because nbgrader
reads the points of a cell from its output. Points that an instructor has given by hand stay as they are.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from nbformat import NotebookNode
from nbformat.v4 import new_output

from grader import exercises
from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course, CourseError
from grader.classroom.grading import attempts, execute_for_display, gradebook, rebuild, record
from grader.classroom.grading.programs import ProgramReport
from grader.classroom.grading.rebuild import RebuiltNotebook
from grader.classroom.grading.record import FOUR_WORKERS, Line, Record
from grader.classroom.templates import template
from grader.exercises import sandboxed, scoring
from grader.exercises.scoring import Score
from grader.exercises.test_cases import draw
from grader.grading.status import IN_WORDS
from grader.sandbox.isolation import Isolation

CHECK = "_check"  # ends the grade_id of an exercise's check
PROGRAM_LINE = "The four-worker program"  # names the one line of a program that was not run
PROGRAM_POINTS = 100  # of the four-worker program, which are all lost if it was not run


def grade_notebook(
    course: Course, submission: StudentSubmission, report: ProgramReport | None, profile: str,
    isolation: type[Isolation],
) -> Record:  # fmt: skip
    """Grade a submission and enter it into the gradebook. `report` is the harness's, if there is a program.

    Returns the grade that counts. This may be an earlier attempt's.

    Raises isolation.IsolationError if the sandbox cannot be had, and CourseError if a graded cell is unknown.
    """
    started = time.monotonic()
    rebuilt = rebuild.rebuild(course, submission)
    cells = _known_grade_cells(rebuilt)
    lines = _grade_exercises(course, rebuilt, cells, isolation)
    problems, passed, look = list(rebuilt.problems.values()), None, []
    if FOUR_WORKERS in cells:
        lines += _grade_program(cells[FOUR_WORKERS], submission, report)
        problems += [submission.program_problem] if submission.program_problem else []
        passed = bool(report and report.report["passed"])
        look = report.report["record"]["worth_a_look"] if report and report.report["record"] else []
    problems += _execute_answers(rebuilt.notebook, isolation)
    for text in reversed(problems):
        rebuild.add_note(rebuilt.notebook, text)
    path = course.record(*submission.id)
    before = record.earlier(path)
    program = course.policy.program
    known = attempts.graded_alike(before, (profile, program.target, program.data))
    sources = known if submission.source in known else [*known, submission.source]
    attempt = sources.index(submission.source) + 1
    graded, seconds = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic() - started
    grade = Record(
        source=submission.source, profile=profile, lines=lines, problems=problems, passed=passed, graded=graded,
        seconds=round(seconds, 2), worth_a_look=look, attempt=attempt, sources=sources,
        counted=attempt, target=program.target, data=program.data, handed_in=submission.timestamp,
    )  # fmt: skip
    if attempts.earlier_counts(course, before, submission, grade):
        grade = attempts.keep_earlier(course, before, submission, grade)
    else:
        gradebook.save_grade(course, submission, rebuilt.notebook)
    record.save(grade, path)
    return grade


def _known_grade_cells(rebuilt: RebuiltNotebook) -> dict[str, NotebookNode]:
    """The cells that earn points, by grade_id. Raises CourseError if the grader cannot judge one of them."""
    cells = rebuild.grade_cells(rebuilt.notebook)
    unknown = [id for id in cells if id != FOUR_WORKERS and id.removesuffix(CHECK) not in exercises.ids()]
    if unknown:  # nbgrader would give a graded cell without output all its points
        raise CourseError(f"this grader does not know the graded cells {', '.join(unknown)}: give their points by hand")
    return cells


def _grade_exercises(
    course: Course, rebuilt: RebuiltNotebook, cells: dict[str, NotebookNode], isolation: type[Isolation]
) -> list[Line]:
    """Score the exercises on hidden test cases, and show the scores in their check cells."""
    lines = []
    ids = [id.removesuffix(CHECK) for id in cells if id.endswith(CHECK)]
    for score in _judge_exercises(course, rebuilt, ids, isolation):
        _set_output(cells[score.id + CHECK], scoring.as_text(score), "", score.points)
        lines += _exercise_lines(score)
    return lines


def _judge_exercises(
    course: Course, rebuilt: RebuiltNotebook, ids: list[str], isolation: type[Isolation]
) -> list[Score]:
    """The exercises' scores in their order. An exercise without an answer has no points, and a reason."""
    sources = {id: rebuilt.sources[id] for id in ids if id in rebuilt.sources}
    graded = sandboxed.grade(sources, course.key, isolation) if sources else []
    scores = {score.id: score for score in graded}
    for id in ids:
        if id not in scores:
            reason = rebuilt.problems.get(id) or rebuilt.problems.get("", "there is no answer")
            scores[id] = scoring.refused(draw(exercises.get(id), course.key), reason)
    return [scores[id] for id in ids]


def _exercise_lines(score: Score) -> Iterator[Line]:
    """One line per group of test cases, or a single line if one reason holds for all groups."""
    if score.note:
        yield Line(cell=score.id, name="an answer", points=score.points, max=score.max, message=score.note)
        return
    for group in score.groups:
        message = "" if group.points == group.max else (group.advice or group.difference)
        yield Line(cell=score.id, name=group.name, points=group.points, max=group.max, message=message)


def _grade_program(cell: NotebookNode, submission: StudentSubmission, report: ProgramReport | None) -> list[Line]:
    """Show the harness's report in the assignment's cell, and return its lines."""
    if report is None:
        problem = submission.program_problem
        _set_output(cell, problem, "", 0)
        return [Line(cell=FOUR_WORKERS, name=PROGRAM_LINE, points=0, max=PROGRAM_POINTS, message=problem)]
    rows, limit = report.report["rows"], report.report["limit"]
    text = "\n".join([*map(_as_text, rows), *([limit] if limit else [])])
    card = template("card.html").render(report=report.report, page=report.page, in_words=IN_WORDS)
    _set_output(cell, text, card, report.report["points"])
    lost = 0 if any(row["max"] for row in rows) else PROGRAM_POINTS  # a refused program has one row, without points
    lines = [
        Line(cell=FOUR_WORKERS, name=row["asks"], points=row["points"], max=row["max"] or lost, message=row["message"])
        for row in rows
    ]
    above = sum(row["points"] for row in rows) - report.report["points"]
    if limit:
        lines.append(Line(cell=FOUR_WORKERS, name="The limit of points", points=-above, max=0, message=limit))
    return lines


def _as_text(row: dict) -> str:
    """A line of the rubric, as a notebook without pictures shows it."""
    points = f"{row['points']:g} / {row['max']}"
    return f"{points} {IN_WORDS[row['status']]}  {row['asks']}: {row['seen']} {row['message']}"


def _set_output(cell: NotebookNode, text: str, html: str, points: float) -> None:
    """Give a check cell two outputs: what people read, and as the last result the points that nbgrader reads."""
    data = {"text/plain": text} | ({"text/html": html} if html else {})
    result = new_output("execute_result", data={"text/plain": f"{points:g}"}, execution_count=1)
    cell.outputs, cell.execution_count = [new_output("display_data", data=data), result], 1


def _execute_answers(notebook: NotebookNode, isolation: type[Isolation]) -> list[str]:
    """Give the answers' cells their outputs. Returns why some of them were not executed, if so."""
    cells = [cell for cell in rebuild.answer_cells(notebook) if cell.cell_type == "code"]
    outputs, stopped = execute_for_display.execute([cell.source for cell in cells], isolation)
    for count, (cell, cell_outputs) in enumerate(zip(cells, outputs, strict=True), start=1):
        cell.outputs, cell.execution_count = cell_outputs, count
    return [stopped] if stopped else []
