"""What a student submitted for an assignment, read from nbgrader's `submitted/`. All of it may be hostile.

Only four things are read: the notebook of the assignment's name, the folder or file of the four-worker program,
nbgrader's time stamp and its secret. A link is never followed.
"""

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from grader.classroom.course import Course
from grader.common import untrusted
from grader.common.contract import ENTRY
from grader.submission import intake
from grader.submission.archives import SubmissionError
from grader.submission.notebook import MAX_BYTES

STUDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
SECRET = re.compile(rb"[A-Za-z0-9+/=_-]{8,256}")
STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?( [A-Z]{1,5}| ?[+-]\d\d:?\d\d)?")  # nbgrader's
STAMP_FILE, SECRET_FILE = "timestamp.txt", "submission_secret.txt"
MAX_STAMP_BYTES, MAX_SECRET_BYTES = 100, 256  # several times what nbgrader writes
PROGRAM = "my_assignment"  # the folder that notebook 08 makes
EXPECTED = f"{PROGRAM}/train.py"


@dataclass(frozen=True)
class StudentSubmission:
    """One student's submission for one assignment.

    `notebook`: its bytes, or None if it cannot be read; then `problem` says why. `program`: the four-worker program's
    files by name, empty if it cannot be read; then `program_problem` says why. `timestamp`: when it was submitted, in
    UTC, if that is known. `secret`: nbgrader derives the address of released feedback from it.
    """

    student: str
    assignment: str
    notebook: bytes | None
    problem: str
    program: dict[str, bytes]
    program_problem: str
    timestamp: datetime | None
    secret: str

    @property
    def id(self) -> tuple[str, str]:
        """The student and the assignment, which identify a submission in a course."""
        return self.student, self.assignment

    @property
    def source(self) -> str:
        """A hash of everything that the grade depends on."""
        digest = hashlib.sha256(f"{self.problem}\0{self.program_problem}\0{self.timestamp}".encode())
        for name, content in sorted([*self.program.items(), ("", self.notebook or b"")]):
            digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()


def find_submissions(
    course: Course, student: str | None = None, assignment: str | None = None
) -> Iterator[tuple[str, str]]:
    """Students and assignments of all folders in `submitted/` that have the name of a released assignment."""
    released = [name for name in course.assignments if assignment in (None, name)]
    for who in students(course):
        if student in (None, who):
            yield from ((who, name) for name in released if _is_folder(course.folder("submitted", who, name)))


def students(course: Course) -> list[str]:
    """The students who have a folder in `submitted/`."""
    paths = sorted((course.root / "submitted").glob("*"))
    return [path.name for path in paths if STUDENT.fullmatch(path.name) and _is_folder(path)]


def unrecognised_paths(course: Course) -> list[str]:
    """Paths in `submitted/` that are no student's folder, and paths in students' folders that are no assignment's."""
    paths = [path for path in sorted((course.root / "submitted").glob("*")) if path.name != ".gitkeep"]
    known = students(course)
    inner = [path for student in known for path in sorted((course.root / "submitted" / student).glob("*"))]
    unrecognised = [path for path in paths if path.name not in known]
    unrecognised += [path for path in inner if path.name not in course.assignments or not _is_folder(path)]
    return [str(path.relative_to(course.root)) for path in unrecognised]


def read_submission(course: Course, student: str, assignment: str) -> StudentSubmission:
    """Read a submission. There is a result whatever the student's files hold."""
    folder = course.folder("submitted", student, assignment)
    notebook, problem = None, ""
    try:
        notebook = untrusted.read(folder / f"{assignment}.ipynb", MAX_BYTES)
    except untrusted.UnreadableError as error:
        problem = f"{error}; hand in the notebook that Jupyter saved, under its name"
    program, program_problem = _program(folder)
    return StudentSubmission(
        student, assignment, notebook, problem, program, program_problem, _timestamp(folder), _secret(folder)
    )


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _program(folder: Path) -> tuple[dict[str, bytes], str]:
    """The program's files from its folder, or train.py beside the notebook, and why there are none, or ""."""
    for name in (PROGRAM, ENTRY):
        path = folder / name
        if path.is_symlink() or path.exists():
            try:
                return intake.read_files(path), ""
            except SubmissionError as error:
                return {}, str(error)
    return {}, f"there is no {EXPECTED}: hand in the folder {PROGRAM} together with the notebook"


def remove_invalid_timestamp(course: Course, student: str, assignment: str) -> None:
    """Remove a time stamp that cannot be read. nbgrader's pages for the whole class would fail or hang on it."""
    folder = course.folder("submitted", student, assignment)
    path = folder / STAMP_FILE
    if os.path.lexists(path) and _timestamp(folder) is None:
        if _is_folder(path):
            shutil.rmtree(path)
        else:
            path.unlink()


def _timestamp(folder: Path) -> datetime | None:
    """nbgrader's time stamp, or None if it cannot be read."""
    try:
        text = untrusted.read(folder / STAMP_FILE, MAX_STAMP_BYTES).decode().strip()
        return parse_utc(text) if STAMP.fullmatch(text) else None
    except (untrusted.UnreadableError, ValueError, OverflowError, TypeError):
        return None


def _secret(folder: Path) -> str:
    """nbgrader's secret of this submission. A secret of another form is replaced by a new one, which nobody knows."""
    try:
        secret = untrusted.read(folder / SECRET_FILE, MAX_SECRET_BYTES)
    except untrusted.UnreadableError:
        secret = b""
    return secret.decode() if SECRET.fullmatch(secret) else secrets.token_hex(32)
