"""Grades a class: everything in nbgrader's `submitted/` that has no grade yet is graded into the gradebook.

It executes nothing of a submission outside the sandbox. If it is interrupted, calling it again continues.
"""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grader.classroom import policy
from grader.classroom.collecting import account, student_submission
from grader.classroom.collecting.downloads import SubmissionImportError
from grader.classroom.collecting.import_submissions import import_submissions, most_attempts
from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course, CourseError
from grader.classroom.grading import attempts, rebuild, record
from grader.classroom.grading.grade_notebook import grade_notebook
from grader.classroom.grading.gradebook import set_due_dates, update_late_penalty
from grader.classroom.grading.programs import ProgramReport, run_programs
from grader.classroom.grading.record import FOUR_WORKERS, Record
from grader.common.progress_bar import counting
from grader.common.text import for_terminal, quoted
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.isolation import IsolationError

NO_REPORT = "the four-worker run has no report; see above"
MAX_PATH, MAX_REASON = 100, 300  # characters in the terminal


@dataclass(frozen=True, kw_only=True)
class AutogradeOptions:
    """What is graded, and how.

    `source`: a folder or archive to import submissions from first. `student`, `assignment`: the only one to grade, or
    None for all. `profile`: the name of the four-worker runs' size. `force`: whether submissions are graded again that
    have a grade. `scheduler`: the address of a Dask scheduler, or None to run programs on this machine.
    """

    profile: str
    source: Path | None = None
    student: str | None = None
    assignment: str | None = None
    force: bool = False
    scheduler: str | None = None


@dataclass(frozen=True)
class AutogradeResult:
    """`failures` holds, by submission, why the grader itself failed: it has no grade."""

    failures: dict[str, str]


def autograde(course: Course, options: AutogradeOptions, console: Console) -> AutogradeResult:
    """Grade a class's submissions. Raises GraderError if grading cannot begin."""
    grading = Autograding(course, options, console)
    grading.check_options()
    set_due_dates(course, course.policy)
    for attempts_taken_in in grading.rounds():
        if options.source:
            grading.take_in(options.source, attempts_taken_in)
        submissions = grading.read_submissions()
        if options.force:
            grading.remove_records(submissions)
        waiting = grading.without_grade(submissions)
        if waiting:
            grading.grade_notebooks(waiting, grading.program_reports(waiting))
    grading.update_late_penalties(submissions)
    grading.print_results(submissions)
    return AutogradeResult(grading.failures)


class Autograding:
    """The stages of grading a class."""

    def __init__(self, course: Course, options: AutogradeOptions, console: Console):
        self.course, self.options, self.console = course, options, console
        self.failures: dict[str, str] = {}  # by submission: why the grader has no result

    def check_options(self) -> None:
        """Raise CourseError if there is no course yet, it has no key, or there is no such assignment.

        Raises PolicyError if an entry of the course's policy is wrong.
        """
        self.course.check()
        self.course.check_key()
        _ = self.course.policy
        released, wanted = self.course.assignments, self.options.assignment
        if wanted is not None and wanted not in released:
            raise CourseError(f"no assignment {wanted}; released are: {', '.join(released)}")

    def rounds(self) -> list[int | None]:
        """Up to which attempt submissions are taken in and graded, round by round. None stands for all attempts.

        Where the best attempt counts, each attempt of a download is graded. Elsewhere the last one is.
        """
        best_of = self.course.policy.attempts.best_of
        if self.options.source is None or best_of is None or self.options.force:
            return [None]
        return list(range(1, min(best_of, most_attempts(self.options.source, self.course)) + 1))

    def take_in(self, source: Path, attempts_taken_in: int | None) -> None:
        """Import submissions from a folder or an archive. Print and save what became of each file.

        Raises SubmissionImportError if there is no submission.
        """
        download = import_submissions(source, self.course, attempts_taken_in)
        for line in account.lines(download):
            self._say(line)
        self._say(f"all files: {account.save(download, self.course)}")
        if not download.submissions:
            wanted = f"NAME/{self.course.assignments[0]}.ipynb"
            raise SubmissionImportError(f"{source} holds no notebook of a released assignment, like {wanted}")

    def read_submissions(self) -> list[StudentSubmission]:
        """Read all submissions that the options select. Raises CourseError if there is none."""
        course, options = self.course, self.options
        names = list(student_submission.find_submissions(course, options.student, options.assignment))
        if not names:
            self._print_unrecognised()
            whose = f" of {options.student}" if options.student else ""
            what = f" for {options.assignment}" if options.assignment else ""
            where = course.root / "submitted"
            raise CourseError(f"no submission{whose}{what} in {where}; collect some, or name them with --from")
        for student, assignment in names:
            student_submission.remove_invalid_timestamp(course, student, assignment)
        return [student_submission.read_submission(course, *name) for name in names]

    def remove_records(self, submissions: list[StudentSubmission]) -> None:
        """Forget the grades, so that an interrupted run with `force` continues without it."""
        for submission in submissions:
            path = self.course.record(*submission.id)
            if not attempts.is_beyond(self.course, record.earlier(path), submission, self._run):
                record.forget(path)

    def without_grade(self, submissions: list[StudentSubmission]) -> list[StudentSubmission]:
        """The submissions that have no grade yet, or have changed since. The policy may limit a student's attempts."""
        graded = set(self.course.graded)
        waiting = [
            submission
            for submission in submissions
            if submission.id not in graded or not self._has_current_record(submission)
        ]
        self._say(f"{len(submissions) - len(waiting)} of {len(submissions)} submissions are graded")
        return [submission for submission in waiting if not self._is_beyond_the_attempts(submission)]

    def _is_beyond_the_attempts(self, submission: StudentSubmission) -> bool:
        """Whether all attempts of a student are used. This is printed, and the grade stays as it is."""
        path = self.course.record(*submission.id)
        if not attempts.is_beyond(self.course, record.earlier(path), submission, self._run):
            return False
        record.bring_back(path)
        most = self.course.policy.attempts.best_of
        self._say(f"{submission.student}, {submission.assignment}: not graded, because {most} attempts were graded")
        return True

    def _has_current_record(self, submission: StudentSubmission) -> bool:
        grade = record.load(self.course.record(*submission.id))
        if grade is None or not attempts.is_graded(self.course, grade, submission):
            return False
        return grade.passed is None or grade.run == self._run  # without a program, there is no run

    @property
    def _run(self) -> record.Run:
        program = self.course.policy.program
        return self.options.profile, program.target, program.data

    def program_reports(self, waiting: list[StudentSubmission]) -> dict[tuple[str, str], ProgramReport | None]:
        """Run the four-worker programs. A report is None if the grader itself failed on it."""
        course, options = self.course, self.options
        assignments = {name for name in course.assignments if rebuild.earns_points(course, name, FOUR_WORKERS)}
        submissions = [
            submission for submission in waiting if submission.program and submission.assignment in assignments
        ]
        reports = run_programs(course, submissions, options.profile, options.scheduler, options.force, self.console)
        return {submission.id: reports.get(submission.student) for submission in submissions}

    def grade_notebooks(
        self, waiting: list[StudentSubmission], reports: dict[tuple[str, str], ProgramReport | None]
    ) -> None:
        """Grade submissions one by one into the gradebook, and print each one's points."""
        with counting(self.console) as bar:
            for submission in bar.track(waiting, description="notebooks"):
                report = reports.get(submission.id)
                if submission.id in reports and report is None:
                    message = self._add_failure(submission, NO_REPORT)
                else:
                    message = self._grade(submission, report)
                self._say(f"{submission.student}, {submission.assignment}: {message}")

    def _grade(self, submission: StudentSubmission, report: ProgramReport | None) -> str:
        """Grade a submission, and return the result in words.

        A mistake of the grader's costs this submission its grade, and no other submission.
        """
        before = record.earlier(self.course.record(*submission.id))
        try:
            grade = grade_notebook(self.course, submission, report, self.options.profile, Bubblewrap)
        except IsolationError:
            raise
        except Exception as error:
            return self._add_failure(submission, f"{type(error).__name__}: {error}")
        return f"{grade.points:g} points, {grade.seconds:.0f} s{_compared(before, grade)}"

    def _add_failure(self, submission: StudentSubmission, reason: str) -> str:
        """Note that a submission has no grade, and return that in words."""
        self.failures[f"{submission.student}, {submission.assignment}"] = reason
        return f"the grader failed, {for_terminal(reason, MAX_REASON)}"

    def update_late_penalties(self, submissions: list[StudentSubmission]) -> None:
        """Compute all penalties anew: an instructor may have changed a due date."""
        graded = set(self.course.graded)
        for submission in submissions:
            if submission.id in graded:
                update_late_penalty(self.course, *submission.id)

    def print_results(self, submissions: list[StudentSubmission]) -> None:
        """Print a table of all points, what is not a submission, and what has no grade."""
        assignments = {submission.assignment for submission in submissions}
        names = [name for name in self.course.assignments if name in assignments]
        table = Table("Student", *(name[:2] for name in names), title="Points given by the grader")
        for student in dict.fromkeys(submission.student for submission in submissions):
            grades = [record.load(self.course.record(student, name)) for name in names]
            table.add_row(student, *("" if grade is None else f"{grade.points:g}" for grade in grades))
        self.console.print(table)
        self._print_unrecognised()
        for student in self.course.policy.unknown_students(student_submission.students(self.course)):
            self._say(
                f"{policy.FILE}: {quoted(student)} has an extension, but nobody of this name has submitted anything"
            )
        for name, reason in self.failures.items():
            self._say(f"no grade yet, the same command tries again: {name}: {for_terminal(reason, MAX_REASON)}")

    def _print_unrecognised(self) -> None:
        for path in student_submission.unrecognised_paths(self.course):
            self._say(f"not taken for a submission, by its name or type: {for_terminal(path, MAX_PATH)}")

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)


def _compared(before: Record | None, grade: Record) -> str:
    """What is different from the grade before, in words. It is empty for the first grade."""
    if before is None:
        return ""
    kept = f"; attempt {grade.counted} of {grade.attempt} counts" if grade.counted != grade.attempt else ""
    changed = record.changes(before, grade)
    if not changed:
        return f"{kept}; no line has changed"
    return "\n    ".join([f"{kept}; {before.points:g} points before", *changed])
