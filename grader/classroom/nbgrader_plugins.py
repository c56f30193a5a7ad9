"""What nbgrader calls of ours: late penalties, the LMS's table, and autograding without running code as oneself."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import nbgrader.apps.api
import nbgrader.apps.autogradeapp
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from traitlets import Enum, Float

from grader.common.text import for_csv

DAY = 24 * 3600


class PerDay(LateSubmissionPlugin):
    """A share of the score for each day begun after the due date."""

    share = Float(0.0, min=0, max=1, help="of the score, for each day begun after the due date").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """The points to take off."""
        return min(score, score * self.share * math.ceil(total_seconds_late / DAY))


class LmsExport(ExportPlugin):
    """A row a student, quoted, and without cells that a spreadsheet would compute."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to `to`, grades.csv by default."""
        assignments = sorted(gradebook.assignments, key=lambda assignment: assignment.name)
        columns = [f"{assignment.name} (of {assignment.max_score:g})" for assignment in assignments]
        most = sum(assignment.max_score for assignment in assignments)
        with Path(self.to or "grades.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(["student", "last name", "first name", "email", *columns, f"total (of {most:g})"])
            for student in sorted(gradebook.students, key=lambda student: student.id):
                scores = [score(gradebook, assignment.name, student.id) for assignment in assignments]
                names = (student.id, student.last_name or "", student.first_name or "", student.email or "")
                written = ["" if one is None else one for one in scores]
                writer.writerow(map(for_csv, [*names, *written, float(sum(one or 0 for one in scores))]))


def score(gradebook: Gradebook, assignment: str, student: str) -> float | None:
    """The points of a submission, penalty taken off; None if there is none."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return None
    return max(0.0, submission.score - submission.late_submission_penalty)


class SafeAutograde(Autograde):
    """nbgrader's autograding, in the grader's way: it executes nothing of a submission as oneself."""

    profile = Enum(("full", "fast"), "full", help="size of the four-worker runs").tag(config=True)

    def start(self) -> None:
        """Grade what the options of nbgrader's command, or formgrader's button, name, in a process of its own."""
        line = [sys.executable, "-m", "grader", "autograde", "--course", self.coursedir.root, "--profile", self.profile]
        if self.coursedir.student_id != "*":
            line += ["--student", self.coursedir.student_id]
        line += ["--assignment", self.coursedir.assignment_id, *(["--force"] if self.force else [])]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        self.log.info(done.stdout)
        if done.returncode:
            raise NbGraderException(done.stderr.strip() or "the grader failed; run make autograde to see on what")


def grade_safely() -> None:
    """Make nbgrader use SafeAutograde: it has no setting for that, and its own runs what learners wrote as oneself."""
    nbgrader.apps.api.Autograde = nbgrader.apps.autogradeapp.Autograde = SafeAutograde
