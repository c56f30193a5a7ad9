"""Enters a graded notebook and its late penalty into nbgrader's gradebook."""

import logging
from datetime import UTC, datetime

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from nbgrader.api import MissingEntry
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades

from grader.classroom.collecting.student_submission import SECRET_FILE, STAMP_FILE, StudentSubmission
from grader.classroom.course import Course
from grader.classroom.grading.record import Record
from grader.classroom.policy import Policy
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


def set_due_dates(course: Course, rules: Policy) -> None:
    """Enter the policy's due dates of the released assignments. Others stay as they are."""
    with course.gradebook as gradebook:
        for name in course.assignments:
            if due := rules.assignment(name).due:
                gradebook.update_or_create_assignment(name, duedate=due.astimezone(UTC).replace(tzinfo=None))


def update_late_penalty(course: Course, student: str, assignment: str) -> None:
    """Set a graded submission's late penalty by nbgrader's plugin, from the current due date and points."""
    _set_extension(course, student, assignment)
    resources = _resources(course, student, assignment)
    AssignLatePenalties(config=course.config, log=QUIET).preprocess(new_notebook(), resources)


def _set_extension(course: Course, student: str, assignment: str) -> None:
    """Enter the student's own due date of the policy. nbgrader keeps it as a time after the assignment's due date.

    Without such an entry there is no extension, also if somebody has given one in another way.
    """
    own = course.policy.extensions.get(student, {}).get(assignment)
    with course.gradebook as gradebook:
        submission = gradebook.find_submission(assignment, student)
        due = submission.assignment.duedate
        submission.extension = own.astimezone(UTC).replace(tzinfo=None) - due if own and due else None
        gradebook.db.commit()


def after_penalty(course: Course, student: str, assignment: str, grade: Record) -> float:
    """What the late penalty leaves of the points that the grader gave for an attempt."""
    _set_extension(course, student, assignment)
    with course.gradebook as gradebook:
        due = gradebook.find_submission(assignment, student).duedate
    late = (grade.handed_in - due).total_seconds() if grade.handed_in and due else 0.0
    return grade.points * (1 - course.policy.late.share(late))


def is_entered(course: Course, student: str, assignment: str) -> bool:
    """Whether the gradebook has this submission."""
    with course.gradebook as gradebook:
        try:
            gradebook.find_submission(assignment, student)
        except MissingEntry:
            return False
    return True


def _resources(course: Course, student: str, assignment: str) -> dict:
    names = {"student": student, "assignment": assignment, "notebook": assignment, "db_url": course.db_url}
    return {"nbgrader": names}
