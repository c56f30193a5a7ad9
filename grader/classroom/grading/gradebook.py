"""Enters a graded notebook and its late penalty into nbgrader's gradebook."""

import logging
from datetime import UTC, datetime

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades

from grader.classroom.collecting.student_submission import SECRET_FILE, STAMP_FILE, StudentSubmission
from grader.classroom.course import Course
from grader.classroom.nbgrader_plugins import score
from grader.common.atomic_write import write_whole

QUIET = logging.getLogger("grader.nbgrader")  # nbgrader logs every late submission, at every call
QUIET.setLevel(logging.CRITICAL)


def save_grade(course: Course, submission: StudentSubmission, notebook: NotebookNode) -> None:
    """Enter a graded notebook's points, and write the files that formgrader and the feedback show."""
    student, assignment = submission.student, submission.assignment
    folder = course.folder("autograded", student, assignment)
    folder.mkdir(parents=True, exist_ok=True)
    stamp = submission.timestamp or datetime.now(UTC).replace(tzinfo=None)
    with course.gradebook as gradebook:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(assignment, student, timestamp=submission.timestamp)
    SaveAutoGrades(config=course.config).preprocess(notebook, _resources(course, student, assignment))
    write_whole(folder / STAMP_FILE, f"{stamp:%Y-%m-%d %H:%M:%S.%f} UTC")
    write_whole(folder / SECRET_FILE, submission.secret)
    write_whole(folder / f"{assignment}.ipynb", nbformat.writes(notebook))


def update_late_penalty(course: Course, student: str, assignment: str) -> None:
    """Set a graded submission's late penalty by nbgrader's plugin, from the current due date and points."""
    _set_extension(course, student, assignment)
    resources = _resources(course, student, assignment)
    AssignLatePenalties(config=course.config, log=QUIET).preprocess(new_notebook(), resources)


def _set_extension(course: Course, student: str, assignment: str) -> None:
    """Enter the student's own due date of the policy. nbgrader keeps it as a time after the assignment's due date."""
    own = course.policy.extensions.get(student, {}).get(assignment)
    with course.gradebook as gradebook:
        submission = gradebook.find_submission(assignment, student)
        due = submission.assignment.duedate
        submission.extension = own.astimezone(UTC).replace(tzinfo=None) - due if own and due else None
        gradebook.db.commit()


def points_after_penalty(course: Course, submission: StudentSubmission, points: float) -> float:
    """What is left of the points of a submission, which is in the gradebook already, by its own time stamp."""
    with course.gradebook as gradebook:
        due = gradebook.find_submission(submission.assignment, submission.student).duedate
    late = (submission.timestamp - due).total_seconds() if submission.timestamp and due else 0.0
    return points * (1 - course.policy.late.share(late))


def counted_points(course: Course, student: str, assignment: str) -> float:
    """The points that the gradebook has for a submission, after the penalty."""
    update_late_penalty(course, student, assignment)
    with course.gradebook as gradebook:
        return score(gradebook, assignment, student) or 0.0


def _resources(course: Course, student: str, assignment: str) -> dict:
    names = {"student": student, "assignment": assignment, "notebook": assignment, "db_url": course.db_url}
    return {"nbgrader": names}
