"""Decides which attempt counts where a course's policy lets the best of several attempts count."""

import nbformat

from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course
from grader.classroom.grading import gradebook, rebuild
from grader.classroom.grading.record import Record
from grader.common.atomic_write import write_whole


def number(before: Record | None, submission: StudentSubmission) -> int:
    """Which attempt a submission is, from 1. What was graded before is no new attempt."""
    if before is None:
        return 1
    return before.attempt + (before.source != submission.source)


def is_beyond(course: Course, before: Record | None, submission: StudentSubmission) -> bool:
    """Whether a submission is not graded, because its student has used all attempts."""
    most = course.policy.attempts.best_of
    return most is not None and number(before, submission) > most


def earlier_counts(course: Course, before: Record | None, submission: StudentSubmission, grade: Record) -> bool:
    """Whether the grade of an earlier attempt counts, and not that of this submission, after the late penalties."""
    if course.policy.attempts.best_of is None or before is None or submission.id not in course.graded:
        return False
    if before.profile != grade.profile or before.counted == grade.attempt:
        return False
    left = gradebook.points_after_penalty(course, submission, grade.points)
    kept = gradebook.counted_points(course, *submission.id)
    return (bool(before.passed), kept) >= (bool(grade.passed), left)


def keep_earlier(course: Course, before: Record, submission: StudentSubmission, grade: Record) -> Record:
    """Keep an earlier attempt's grade, say so at the top of its notebook, and return its record."""
    student, assignment = submission.id
    path = course.folder("autograded", student, assignment) / f"{assignment}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    text = (
        f"Attempt {grade.attempt} has {grade.points:g} points. Attempt {before.counted} counts, with {before.points:g}."
    )
    rebuild.add_note(notebook, text)
    write_whole(path, nbformat.writes(notebook))
    return before.model_copy(update={"source": submission.source, "attempt": grade.attempt})
