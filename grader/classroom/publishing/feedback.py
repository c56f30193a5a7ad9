"""`python -m grader feedback`: a page a submission by nbgrader, released where learners fetch it."""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from grader.classroom.course import Course, CourseError, succeed
from grader.classroom.grading.autograde import penalise
from grader.common.atomic_write import write_whole
from grader.common.progress_bar import counting


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0, 1 if a page could not be made or released, 2 before the first release."""
    course = Course(args.course.resolve())
    try:
        course.check()
        graded, failed = course.graded, []
        for student, name in _bar(graded, console):
            failed += _tried(page, course, student, name)
        pages = len(graded) - len(failed)
        for name in sorted({name for _, name in graded}):
            failed += _tried(succeed, course.api.release_feedback(name), f"{name} cannot be released")
    except CourseError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    console.print(f"{pages} pages in {course.root / 'feedback'}, and released", highlight=False)
    for told in failed:
        print(f"grader: {told}", file=sys.stderr)
    return 1 if failed else 0


def _tried(step: Callable, *arguments: object) -> list[str]:
    """Why a step failed; nothing if it did not: one page that cannot be made keeps no other from being released."""
    try:
        step(*arguments)
    except CourseError as error:
        return [str(error)]
    return []


def _bar(graded: list[tuple[str, str]], console: Console) -> Iterator[tuple[str, str]]:
    with counting(console) as bar:
        yield from bar.track(graded, description="feedback")


def page(course: Course, student: str, assignment: str) -> None:
    """Make a submission's page, if there is none or its grade or comments have changed. Raises CourseError."""
    penalise(course, student, assignment)
    state, mark = _state(course, student, assignment), course.record(student, assignment).with_suffix(".feedback")
    target = course.folder("feedback", student, assignment) / f"{assignment}.html"
    if target.exists() and mark.exists() and mark.read_text() == state:
        return
    succeed(course.api.generate_feedback(assignment, student, force=True), f"no page for {student}, {assignment}")
    write_whole(mark, state)


def _state(course: Course, student: str, assignment: str) -> str:
    """A hash of what the page shows."""
    folder = course.folder("autograded", student, assignment)
    digest = hashlib.sha256()
    for path in sorted(filter(Path.is_file, folder.iterdir())):  # JupyterLab keeps a folder of checkpoints there
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    with course.gradebook as gradebook:
        found = gradebook.find_submission_notebook(assignment, assignment, student)
        shown = [sorted((grade.name, grade.score) for grade in found.grades), found.late_submission_penalty]
        shown.append(sorted((comment.name, str(comment.comment)) for comment in found.comments))
    digest.update(repr(shown).encode(errors="replace"))
    return digest.hexdigest()
