"""Plugins for nbgrader: late penalties, the LMS's table, and autograding that runs code in the sandbox only."""

import csv
import subprocess
import sys
from pathlib import Path

import nbgrader.apps.api
import nbgrader.apps.autogradeapp
from nbgrader.api import Assignment, Gradebook, MissingEntry
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from traitlets import Enum
from traitlets.config import Config

from grader.classroom.course import Course
from grader.classroom.policy import Policy
from grader.common.text import for_csv


def _policy(config: Config) -> Policy:
    """The rules of the course that nbgrader's configuration belongs to."""
    return Course(Path(config.CourseDirectory.root)).policy


class PerDay(LateSubmissionPlugin):
    """Takes off a share of the score for each day that has begun after the due date, as the course's policy says."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """The points to take off."""
        return score * _policy(self.config).late.share(total_seconds_late)


class LmsExport(ExportPlugin):
    """Writes a table with one row per student. No cell is a formula for a spreadsheet."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to the path `to`, or to grades.csv."""
        assignments = sorted(gradebook.assignments, key=lambda assignment: assignment.name)
        policy = _policy(self.config)
        columns = [_column(assignment, policy) for assignment in assignments]
        max_total = max_points(gradebook, policy)
        with Path(self.to or "grades.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(["student", "last name", "first name", "email", *columns, f"total (of {max_total:g})"])
            for student in sorted(gradebook.students, key=lambda student: student.id):
                scores = [score(gradebook, assignment.name, student.id) for assignment in assignments]
                names = (student.id, student.last_name or "", student.first_name or "", student.email or "")
                cells = ["" if points is None else points for points in scores]
                writer.writerow(map(for_csv, [*names, *cells, total(gradebook, policy, student.id)]))


def _column(assignment: Assignment, policy: Policy) -> str:
    """The title of an assignment's column, with what the total does with its points."""
    rules = policy.assignment(assignment.name)
    weight = ", dropped" if rules.dropped else f", weight {rules.weight:g}" if rules.weight != 1 else ""
    return f"{assignment.name} (of {assignment.max_score:g}{weight})"


def total(gradebook: Gradebook, policy: Policy, student: str) -> float:
    """A student's points in all assignments, with the policy's weights and without the dropped ones."""
    names = [assignment.name for assignment in gradebook.assignments]
    return float(sum(policy.assignment(name).factor * (score(gradebook, name, student) or 0) for name in names))


def max_points(gradebook: Gradebook, policy: Policy) -> float:
    """The points that a student can have in all assignments together."""
    return sum(policy.assignment(one.name).factor * one.max_score for one in gradebook.assignments)


def score(gradebook: Gradebook, assignment: str, student: str) -> float | None:
    """The points of a submission after its late penalty. None if there is no submission."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    return max(0.0, submission.score - submission.late_submission_penalty)


class SafeAutograde(Autograde):
    """Replaces nbgrader's autograding by the grader's, which executes a submission in the sandbox only."""

    profile = Enum(("full", "fast"), "full", help="size of the four-worker runs").tag(config=True)

    def start(self) -> None:
        """Grade, in a new process, what nbgrader's command or formgrader's button has selected."""
        line = [sys.executable, "-m", "grader", "autograde", "--course", self.coursedir.root, "--profile", self.profile]
        if self.coursedir.student_id != "*":
            line += ["--student", self.coursedir.student_id]
        line += ["--assignment", self.coursedir.assignment_id, *(["--force"] if self.force else [])]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        self.log.info(done.stdout)
        if done.returncode:
            raise NbGraderException(done.stderr.strip() or "the grader failed; run make autograde to see on what")


def grade_safely() -> None:
    """Make nbgrader use SafeAutograde, for which it has no setting. Its own runs students' code as the instructor."""
    nbgrader.apps.api.Autograde = nbgrader.apps.autogradeapp.Autograde = SafeAutograde
