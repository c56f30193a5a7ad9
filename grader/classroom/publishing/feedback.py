"""Makes one feedback page per submission with nbgrader, and releases the pages to the students."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from grader.classroom.course import Course, CourseError, check_api_result
from grader.classroom.grading.gradebook import update_late_penalty
from grader.common.atomic_write import write_whole
from grader.common.progress_bar import counting


@dataclass(frozen=True)
class FeedbackResult:
    """The students and assignments that have a page, and one message per page or release that failed."""

    pages: list[tuple[str, str]]
    failures: list[str]


def release_feedback(course: Course, console: Console) -> FeedbackResult:
    """Make the pages of all graded submissions, and release them. Raises CourseError before the first release."""
    course.check()
    graded, pages, failures = course.graded, [], []
    with counting(console) as bar:
        for student, assignment in bar.track(graded, description="feedback"):
            failed = _failure(make_page, course, student, assignment)
            failures += failed
            pages += [] if failed else [(student, assignment)]
    for assignment in sorted({assignment for _, assignment in graded}):
        failures += _failure(_release, course, assignment)
    return FeedbackResult(pages, failures)


def _failure(step: Callable[..., None], *arguments: object) -> list[str]:
    """Take a step. Returns why it failed, if it did: one page that fails must not keep the others from release."""
    try:
        step(*arguments)
    except CourseError as error:
        return [str(error)]
    return []


def _release(course: Course, assignment: str) -> None:
    check_api_result(course.api.release_feedback(assignment), f"{assignment} cannot be released")


def make_page(course: Course, student: str, assignment: str) -> None:
    """Make a submission's page if there is none, or if its grade or comments have changed. Raises CourseError."""
    update_late_penalty(course, student, assignment)
    state = _state(course, student, assignment)
    state_file = course.record(student, assignment).with_suffix(".feedback")
    target = course.folder("feedback", student, assignment) / f"{assignment}.html"
    if target.exists() and state_file.exists() and state_file.read_text() == state:
        return
    result = course.api.generate_feedback(assignment, student, force=True)
    check_api_result(result, f"no page for {student}, {assignment}")
    write_whole(state_file, state)


def _state(course: Course, student: str, assignment: str) -> str:
    """A hash of what the page shows."""
    folder = course.folder("autograded", student, assignment)
    digest = hashlib.sha256()
    for path in sorted(filter(Path.is_file, folder.iterdir())):  # JupyterLab keeps a folder of checkpoints there
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    with course.gradebook as gradebook:
        notebook = gradebook.find_submission_notebook(assignment, assignment, student)
        shown = [sorted((grade.name, grade.score) for grade in notebook.grades), notebook.late_submission_penalty]
        shown.append(sorted((comment.name, str(comment.comment)) for comment in notebook.comments))
    digest.update(repr(shown).encode(errors="replace"))
    return digest.hexdigest()
