"""Imports submissions from a folder, or from a platform's download, into nbgrader's `submitted/`.

`downloads` reads the files, `platforms` and `placement` say which submission each belongs to, and `account` tells the
instructor what became of each. Only the files of a submission are written, and grading checks their content. nbgrader's
time stamp and secret are not imported, because the student could have written them.
"""

import errno
import json
import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from grader.classroom.collecting import downloads, placement
from grader.classroom.collecting.downloads import File, SubmissionImportError
from grader.classroom.collecting.placement import Fate, Home, Released
from grader.classroom.course import Course
from grader.classroom.grading.record import FOUR_WORKERS
from grader.common.atomic_write import write_whole
from grader.common.text import one_line
from grader.submission import archives, intake
from grader.submission.notebook import MAX_BYTES

MAX_STUDENT_FILES = 1000  # of a student, more than `intake` accepts of a program, so that it can say what is wrong
NOT_TAKEN_IN = "this hand-in has not been taken in; run make autograde with this download first"
UNREADABLE = "it cannot be read; ask for it again. What was handed in before still counts"
PEOPLE = "people.json"  # in the course's folder: the platform's number of each student, by assignment
MAX_REASON = 200  # characters of an error's text
UNWRITABLE = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)  # errors that a file's name causes


@dataclass(frozen=True)
class Download:
    """The names of a download's files, and what becomes of each, in the same order."""

    names: list[str]
    fates: list[Fate]

    @property
    def submissions(self) -> list[tuple[str, str]]:
        """The students and assignments that files belong to."""
        return sorted({(home.student, home.assignment) for fate in self.fates for home in fate.homes})


def import_submissions(source: Path, course: Course, attempts: int | None = None) -> Download:
    """Write the submissions in `source` to `submitted/`, in place of those students' earlier ones.

    If a file of a submission cannot be read, an earlier submission stays. With `attempts`, each student's later
    attempts are left out. Raises SubmissionImportError if `source` cannot be read.
    """
    download = planned(source, course, attempts)
    keep_people_apart(course, download.fates, note=True)
    with tempfile.TemporaryDirectory(prefix="arrivals-", dir=course.root) as folder:
        damaged = _write_all(source, download.fates, Path(folder))
        for student, assignment in download.submissions:
            if (student, assignment) in damaged and course.folder("submitted", student, assignment).exists():
                continue
            new = Path(folder, student, assignment)
            _add_notebook(course, assignment, new)
            _replace(new, course.folder("submitted", student, assignment))
    return download


def planned(source: Path, course: Course, attempts: int | None = None) -> Download:
    """Decide what becomes of each file of a download. Nothing is written. Raises SubmissionImportError."""
    files = _files(source)
    usable = [file.path for file in files if not file.problem]
    placed = iter(placement.place(usable, _released(course), source.resolve().name, _pattern(course), attempts))
    fates = [Fate(reason=file.problem) if file.problem else next(placed) for file in files]
    return Download([file.name for file in files], fates)


def keep_people_apart(course: Course, fates: list[Fate], note: bool) -> None:
    """Give a reason to the files of a person whose namesake handed in the same assignment in an earlier download.

    Moodle, Canvas and Brightspace number their people. With `note` the numbers are noted in the course's folder.
    Without it, a person whose number is not noted there gets a reason, too.
    """
    path = course.root / PEOPLE
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for fate in filter(lambda fate: fate.person.isascii() and fate.person.isdigit(), fates):
        for home in list(fate.homes):
            key = f"{home.student}/{home.assignment}"
            before = known.setdefault(key, fate.person) if note else known.get(key)
            if before != fate.person:
                fate.homes.remove(home)
                fate.kept_apart = True
                fate.reason = _namesake(home.student, before, fate.person) if before else NOT_TAKEN_IN
    if note:
        write_whole(path, json.dumps(known, indent=1, sort_keys=True))


def _namesake(student: str, before: str, now: str) -> str:
    return (
        f"a student {student} with the number {before} has handed in before, and this one has {now}; rename the "
        f"folders of one of them, or, if both are one person, delete the entries of {student} in {PEOPLE}"
    )


def most_attempts(source: Path, course: Course) -> int:
    """Return how many attempts the student with the most of them has. Raises SubmissionImportError."""
    paths = [file.path for file in _files(source) if not file.problem]
    return placement.most_attempts(paths, _released(course), source.resolve().name, _pattern(course))


def _files(source: Path) -> list[File]:
    """All files of a download, without their content. Raises SubmissionImportError if it cannot be read."""
    if not source.exists():
        raise SubmissionImportError(f"{source} does not exist")
    try:
        with downloads.open_download(source) as files:
            return [replace(file, read=None) for file in files]
    except archives.DAMAGED as error:
        raise SubmissionImportError(f"{source} cannot be read to its end: {one_line(str(error), MAX_REASON)}") from None


def _released(course: Course) -> Released:
    names = frozenset(course.assignments)
    return Released(names, frozenset(name for name in names if _has_program(course, name)))


def _has_program(course: Course, assignment: str) -> bool:
    """Whether the released notebook asks for a four-worker program, or is not there and may ask for one."""
    notebook = _notebook(course, assignment)
    return not notebook.is_file() or FOUR_WORKERS in notebook.read_text(encoding="utf-8")


def _notebook(course: Course, assignment: str) -> Path:
    return course.folder("release", ".", assignment) / f"{assignment}.ipynb"


def _pattern(course: Course) -> re.Pattern | None:
    """The pattern that the course's configuration gives to nbgrader's zip collector. None if there is none.

    Raises SubmissionImportError if it is no regular expression.
    """
    try:
        text = str(course.config.FileNameCollectorPlugin.get("named_regexp") or "")
        return re.compile(text) if text else None
    except re.error as error:
        raise SubmissionImportError(f"nbgrader_config.py: named_regexp is no regular expression: {error}") from None


def _write_all(source: Path, fates: list[Fate], target: Path) -> set[tuple[str, str]]:
    """Write the files that have homes to `target`/student/assignment. A file that cannot be written gets a reason.

    Returns the students and assignments of files that cannot be read.
    """
    counts: Counter[str] = Counter()
    damaged = set()
    with downloads.open_download(source) as files:
        for file, fate in zip(files, fates, strict=True):
            for home in list(fate.homes):
                is_notebook = home.inner.suffix == ".ipynb"
                counts[home.student] += not is_notebook
                if counts[home.student] > MAX_STUDENT_FILES and not is_notebook:
                    problem = f"the student handed in more than {MAX_STUDENT_FILES:,} files"
                else:
                    problem = _write(file, home, target, MAX_BYTES if is_notebook else intake.MAX_SOURCE_BYTES)
                fate.reason = fate.reason or problem
                if problem == UNREADABLE:
                    damaged.add((home.student, home.assignment))
    return damaged


def _write(file: File, home: Home, target: Path, max_bytes: int) -> str:
    """Write a file, and return why it was not written, or "".

    It must not stop the class's import. It may be damaged, its name may be too long, or it may be in a folder's place.
    """
    path = target / home.student / home.assignment / home.inner
    try:
        content = file.read(max_bytes + 1)
    except archives.DAMAGED:
        return UNREADABLE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        return "its name cannot be written; ask for another name"
    return ""


def _add_notebook(course: Course, assignment: str, new: Path) -> None:
    """Add the released notebook to a program that was handed in alone."""
    notebook = _notebook(course, assignment)
    if notebook.is_file() and new.is_dir() and not (new / notebook.name).exists():
        shutil.copyfile(notebook, new / notebook.name)


def _replace(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`. It is empty if none of its files could be written."""
    new.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    new.replace(target)
