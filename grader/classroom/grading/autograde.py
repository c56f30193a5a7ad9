"""`python -m grader autograde`: grades what lies in nbgrader's `submitted/`, and enters it into the gradebook.

For each submission: read it, rebuild it on the released notebook, execute its answers for display in a sandboxed
kernel, judge exercises by hidden probes and the four-worker program by the harness, and let nbgrader save the points.
The check cells' outputs are ours, so nbgrader's own reading of them gives our points, and manual ones stay as they are.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook, new_output
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades
from rich.console import Console
from rich.table import Table

from grader import exercises
from grader.classroom.collecting import import_submissions, student_submission
from grader.classroom.collecting.student_submission import Handed
from grader.classroom.course import Course, CourseError
from grader.classroom.grading import execute_for_display, programs, rebuild, record
from grader.classroom.grading.programs import Graded
from grader.classroom.grading.record import Line, Record
from grader.classroom.templates import template
from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError
from grader.common.progress_bar import counting
from grader.common.text import for_terminal
from grader.exercises import sandboxed, scoring
from grader.exercises.scoring import Judgement
from grader.exercises.test_cases import draw
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.isolation import Isolation, IsolationError

CHECK = "_check"  # ends the grade_id of an exercise's check
FOUR_WORKERS = "four_workers"  # the grade_id of the assignment's check
NO_PROGRAM = "The four-worker program"
WHOLE = 100  # points of that program, all lost where it could not be graded
NO_REPORT = "the four-worker run has no report; see above"
QUIET = logging.getLogger("grader.nbgrader")  # nbgrader tells of every late submission
QUIET.setLevel(logging.CRITICAL)


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0 if all that was handed in has a grade, 1 if the grader failed on some, 2 if it cannot begin."""
    course = Course(args.course.resolve())
    try:
        return Class(course, args, console).grade()
    except GraderError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        command = "the same command without --force" if args.force else "the same command"
        print(f"grader: interrupted; {command} goes on where this one was", file=sys.stderr)
        return 130


class Class:
    """A class on its way into the gradebook."""

    def __init__(self, course: Course, args: argparse.Namespace, console: Console):
        self.course, self.args, self.console = course, args, console
        self.failed: dict[str, str] = {}  # by submission: why the grader has no result

    def grade(self) -> int:
        """The exit status: see `run` above."""
        course, args = self.course, self.args
        course.check()
        if args.assignment not in (None, *course.assignments):
            raise CourseError(f"no assignment {args.assignment}; released are: {', '.join(course.assignments)}")
        if args.source:
            count, left = import_submissions.take(args.source, course)
            self._say(f"taken in: {count} submissions")
            for path in left:
                self._say(f"not taken in: {for_terminal(path, 100)}")
        names = list(student_submission.submissions(course, args.student, args.assignment))
        for one in names:
            student_submission.disarm(course, *one)
        found = [student_submission.read(course, *one) for one in names]
        if args.force:  # an interrupted run then goes on without it
            for one in found:
                course.record(one.student, one.assignment).unlink(missing_ok=True)
        graded = set(course.graded)
        waiting = [one for one in found if (one.student, one.assignment) not in graded or not self._known(one)]
        self._say(f"{len(found) - len(waiting)} of {len(found)} submissions are graded")
        if waiting:
            self._grade_all(waiting)
        graded = set(course.graded)
        for one in found:
            if (one.student, one.assignment) in graded:
                penalise(course, one.student, one.assignment)
        self._show(found)
        if not found:
            raise CourseError(self._nothing())
        return 1 if self.failed else 0

    def _nothing(self) -> str:
        whose = f" of {self.args.student}" if self.args.student else ""
        what = f" for {self.args.assignment}" if self.args.assignment else ""
        return f"no submission{whose}{what} in {self.course.root / 'submitted'}; collect some, or name them with --from"

    def _known(self, one: Handed) -> bool:
        found = record.load(self.course.record(one.student, one.assignment))
        return bool(found and (found.source, found.profile) == (one.source, self.args.profile))

    def _grade_all(self, waiting: list[Handed]) -> None:
        course, args = self.course, self.args
        asked = {name for name in course.assignments if rebuild.earns_points(course, name, FOUR_WORKERS)}
        runs = [one for one in waiting if one.program and one.assignment in asked]
        reports = programs.run(course, runs, args.profile, args.scheduler, args.force, self.console)
        with counting(self.console) as bar:
            for one in bar.track(waiting, description="notebooks"):
                report = reports.get(one.student)
                told = self._failed(one, NO_REPORT) if one in runs and not report else self._grade(one, report)
                self._say(f"{one.student}, {one.assignment}: {told}")

    def _grade(self, one: Handed, report: Graded | None) -> str:
        """Grade a submission; in words. What goes wrong in the grader costs this submission its grade, no other."""
        try:
            found = grade(self.course, one, report, self.args.profile, Bubblewrap)
        except IsolationError:
            raise
        except Exception as error:
            return self._failed(one, f"{type(error).__name__}: {error}")
        return f"{found.points:g} points, {found.seconds:.0f} s"

    def _failed(self, one: Handed, reason: str) -> str:
        """Note that a submission has no grade; in words."""
        self.failed[f"{one.student}, {one.assignment}"] = reason
        return f"the grader failed, {for_terminal(reason, 300)}"

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def _show(self, found: list[Handed]) -> None:
        """Print a table of all points, what was not taken for a submission, and what has no grade."""
        names = [name for name in self.course.assignments if any(one.assignment == name for one in found)]
        table = Table("Student", *(name[:2] for name in names), title="Points given by the grader")
        for student in dict.fromkeys(one.student for one in found):
            graded = [record.load(self.course.record(student, name)) for name in names]
            table.add_row(student, *("" if one is None else f"{one.points:g}" for one in graded))
        self.console.print(table)
        for path in student_submission.strangers(self.course):
            self._say(f"not taken for a submission, by its name or type: {for_terminal(path, 80)}")
        for name, reason in self.failed.items():
            self._say(f"no grade yet, the same command tries again: {name}: {for_terminal(reason, 300)}")


def grade(course: Course, one: Handed, report: Graded | None, profile: str, isolation: type[Isolation]) -> Record:
    """Grade a submission and enter it into the gradebook. `report`: the harness's, if it has a program.

    Raises isolation.IsolationError if the sandbox cannot be had.
    """
    started = time.monotonic()
    rebuilt = rebuild.rebuild(course, one)
    cells = rebuild.grade_cells(rebuilt.notebook)
    if unknown := [id for id in cells if id != FOUR_WORKERS and id.removesuffix(CHECK) not in exercises.IDS]:
        # nbgrader gives a graded cell without output all its points.
        raise CourseError(f"this grader does not know the graded cells {', '.join(unknown)}: give their points by hand")
    judged = _judged(course, rebuilt, [id.removesuffix(CHECK) for id in cells if id.endswith(CHECK)], isolation)
    lines, problems = [], list(rebuilt.problems.values())
    for result in judged:
        _answer(cells[result.id + CHECK], scoring.as_text(result), "", result.points)
        lines += _groups(result)
    if FOUR_WORKERS in cells:
        lines += _program(cells[FOUR_WORKERS], one, report)
        problems += [one.program_problem] if one.program_problem else []
    problems += _execute(rebuilt.notebook, isolation)
    for text in reversed(problems):
        rebuild.note(rebuilt.notebook, text)
    _save(course, one, rebuilt.notebook)
    passed = None if FOUR_WORKERS not in cells else bool(report and report.report["passed"])
    graded, seconds = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic() - started
    found = Record(
        source=one.source, profile=profile, lines=lines, problems=problems, passed=passed, graded=graded,
        seconds=round(seconds, 2),
    )  # fmt: skip
    record.save(found, course.record(one.student, one.assignment))
    return found


def _judged(course: Course, rebuilt: rebuild.Rebuilt, ids: list[str], isolation: type[Isolation]) -> list[Judgement]:
    """The exercises' judgements in their order; one without an answer has no points, and is told why."""
    given = {id: rebuilt.sources[id] for id in ids if id in rebuilt.sources}
    found = {result.id: result for result in sandboxed.grade(given, course.key, isolation)} if given else {}
    for id in ids:
        if id not in found:
            reason = rebuilt.problems.get(id) or rebuilt.problems.get("", "there is no answer")
            found[id] = scoring.refused(draw(exercises.get(id), course.key), reason)
    return [found[id] for id in ids]


def _groups(result: Judgement) -> Iterator[Line]:
    """A line a group of probes, or a single one where the same holds for all of them."""
    if result.note:
        yield Line(cell=result.id, name="an answer", points=result.points, max=result.max, message=result.note)
        return
    for group in result.groups:
        message = "" if group.points == group.max else (group.advice or group.difference)
        yield Line(cell=result.id, name=group.name, points=group.points, max=group.max, message=message)


def _program(cell: NotebookNode, one: Handed, found: Graded | None) -> list[Line]:
    """Show the harness's report in the assignment's cell; its lines."""
    if found is None:
        _answer(cell, one.program_problem, "", 0)
        line = Line(cell=FOUR_WORKERS, name=NO_PROGRAM, points=0, max=WHOLE, message=one.program_problem)
        return [line]
    rows = found.report["rows"]
    text = "\n".join(f"{row['points']:g} / {row['max']}  {row['asks']}: {row['seen']} {row['message']}" for row in rows)
    _answer(cell, text, template("card.html").render(report=found.report, page=found.page), found.report["points"])
    lost = 0 if any(row["max"] for row in rows) else WHOLE  # of a refused program the one row has no points
    return [
        Line(cell=FOUR_WORKERS, name=row["asks"], points=row["points"], max=row["max"] or lost, message=row["message"])
        for row in rows
    ]


def _answer(cell: NotebookNode, text: str, html: str, points: float) -> None:
    """Give a check its output: what is to be read, then the points as nbgrader takes them, from the last result."""
    data = {"text/plain": text} | ({"text/html": html} if html else {})
    result = new_output("execute_result", data={"text/plain": f"{points:g}"}, execution_count=1)
    cell.outputs, cell.execution_count = [new_output("display_data", data=data), result], 1


def _execute(notebook: NotebookNode, isolation: type[Isolation]) -> list[str]:
    """Give the answers' cells their outputs; what kept some of them from being executed."""
    cells = [cell for cell in rebuild.answer_cells(notebook) if cell.cell_type == "code"]
    outputs, stopped = execute_for_display.execute([cell.source for cell in cells], isolation)
    for count, (cell, found) in enumerate(zip(cells, outputs, strict=True), start=1):
        cell.outputs, cell.execution_count = found, count
    return [stopped] if stopped else []


def _save(course: Course, one: Handed, notebook: NotebookNode) -> None:
    """Enter the points into nbgrader's gradebook, and write what formgrader and the feedback show."""
    folder = course.folder("autograded", one.student, one.assignment)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = one.timestamp or datetime.now(UTC).replace(tzinfo=None)
    with course.gradebook as gradebook:
        gradebook.update_or_create_student(one.student)
        gradebook.update_or_create_submission(one.assignment, one.student, timestamp=one.timestamp)
    SaveAutoGrades(config=course.config).preprocess(notebook, _resources(course, one.student, one.assignment))
    write_whole(folder / student_submission.STAMP_FILE, f"{stamp:%Y-%m-%d %H:%M:%S.%f} UTC")
    write_whole(folder / student_submission.SECRET_FILE, one.secret)
    write_whole(folder / f"{one.assignment}.ipynb", nbformat.writes(notebook))


def penalise(course: Course, student: str, assignment: str) -> None:
    """Set a graded submission's late penalty by nbgrader's plugin, from the due date and the points as they are now."""
    resources = _resources(course, student, assignment)
    AssignLatePenalties(config=course.config, log=QUIET).preprocess(new_notebook(), resources)


def _resources(course: Course, student: str, assignment: str) -> dict:
    names = {"student": student, "assignment": assignment, "notebook": assignment, "db_url": course.db_url}
    return {"nbgrader": names}
