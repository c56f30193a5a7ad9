"""Decides which attempt counts where a course's policy lets the best of several attempts count.

An attempt is a submission that was graded. Only the points that the grader gave are compared, after the late penalty.
"""

import nbformat

from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course
from grader.classroom.grading import gradebook, rebuild
from grader.classroom.grading.record import Record, Run
from grader.common.atomic_write import write_whole

NOTE = "from-the-grader-attempts"  # the id of the cell that says which attempt counts


def graded_alike(before: Record | None, run: Run) -> list[str]:
    """The hashes of the attempts that were graded with the same kind of run, the oldest first.

    With another size, target or data, the attempts are counted anew, because they are graded anew.
    """
    if before is None or (before.passed is not None and before.run != run):
        return []
    return before.sources or [before.source]


def number(before: Record | None, submission: StudentSubmission, run: Run) -> int:
    """Which attempt a submission is, from 1. What was graded before is no new attempt."""
    known = graded_alike(before, run)
    return known.index(submission.source) + 1 if submission.source in known else len(known) + 1


def is_graded(course: Course, grade: Record, submission: StudentSubmission) -> bool:
    """Whether the submission's attempt was graded. Where the best attempt counts, an earlier one is not graded again.

    A platform's download may hold all attempts each time.
    """
    known = grade.sources if course.policy.attempts.best_of else []
    return submission.source in (grade.source, *known)


def is_beyond(course: Course, before: Record | None, submission: StudentSubmission, run: Run) -> bool:
    """Whether a submission is not graded, because its student has used all attempts."""
    most = course.policy.attempts.best_of
    return most is not None and number(before, submission, run) > most


def earlier_counts(course: Course, before: Record | None, submission: StudentSubmission, grade: Record) -> bool:
    """Whether the grade of an earlier attempt counts, and not that of this submission.

    Runs of another size or with another target cannot be compared. Then this submission counts, because the files of an
    earlier one are no longer there.
    """
    if course.policy.attempts.best_of is None or before is None or before.counted == grade.attempt:
        return False
    if not before.is_comparable(grade) or not gradebook.is_entered(course, *submission.id):
        return False
    kept, left = (gradebook.after_penalty(course, *submission.id, one) for one in (before, grade))
    return (bool(before.passed), kept) >= (bool(grade.passed), left)


def keep_earlier(course: Course, before: Record, submission: StudentSubmission, grade: Record) -> Record:
    """Keep an earlier attempt's grade, say so at the top of its notebook, and return its record."""
    student, assignment = submission.id
    path = course.folder("autograded", student, assignment) / f"{assignment}.ipynb"
    if path.is_file():
        notebook = nbformat.read(path, as_version=4)
        text = f"Attempt {grade.attempt} has {grade.points:g} points. Attempt {before.counted} counts"
        rebuild.add_note(notebook, f"{text}, with {before.points:g}.", NOTE)
        write_whole(path, nbformat.writes(notebook))
    return before.model_copy(update={"source": submission.source, "attempt": grade.attempt, "sources": grade.sources})
