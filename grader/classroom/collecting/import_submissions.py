"""Imports submissions from a folder, or from an LMS's archive, into nbgrader's `submitted/`.

The top level has one folder per student. Somewhere below it are the notebooks under their released names, and beside
notebook 08 the program's folder. Of a folder of Moodle's ("Name_123_assignsubmission_file") only the name counts,
because the number differs between Moodle's assignments. `platforms` reads the forms of other platforms. Of several
attempts the last counts.

Nothing is unpacked: only files with those names are read, and grading checks their content. nbgrader's time stamp and
secret are not imported, because the student could have written them.
"""

import errno
import hashlib
import re
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath

from grader.classroom.collecting import platforms
from grader.classroom.collecting.student_submission import PROGRAM, STUDENT
from grader.classroom.course import Course
from grader.classroom.grading.record import FOUR_WORKERS
from grader.common.contract import ENTRY
from grader.common.errors import GraderError
from grader.common.text import one_line, quoted
from grader.submission import archives, intake
from grader.submission.notebook import MAX_BYTES

MOODLE = re.compile(r"(.+)_(\d+)_assignsubmission_.*", re.DOTALL)
MAX_FILES = 100_000  # of a class, so that an archive of endless entries ends
MAX_STUDENT_FILES = 1000  # of a student, more than `intake` accepts of a program, so that it can say what is wrong
MAX_REASON = 200  # characters of an error's text
UNWRITABLE = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)  # errors that a file's name causes
WORK = re.compile(r".*\.(ipynb|py|zip|tar|tgz|gz|bz2|xz|7z|rar)", re.IGNORECASE | re.DOTALL)  # reported if ignored
GENERATED = {".ipynb_checkpoints", "__MACOSX"}  # folders that programs make, and no student

Read = Callable[[int], bytes]  # reads a file, up to a number of bytes
Files = Iterator[tuple[PurePosixPath, Read]]
NotebookFolders = dict[str, dict[str, PurePosixPath]]  # by student and assignment


class SubmissionImportError(GraderError):
    """The submissions cannot be imported. The message is one line."""


def import_submissions(source: Path, course: Course) -> tuple[int, list[str]]:
    """Write the submissions in `source` to `submitted/`, in place of those students' earlier ones.

    Returns the number of submissions, and the files that look like work and were ignored. Raises SubmissionImportError.
    """
    if not source.exists():
        raise SubmissionImportError(f"{source} does not exist")
    try:
        with tempfile.TemporaryDirectory(prefix="arrivals-", dir=course.root) as folder:
            submissions, ignored = _sort(source, course, Path(folder))
            for student, assignment in submissions:
                _replace(Path(folder, student, assignment), course.folder("submitted", student, assignment))
    except archives.DAMAGED as error:
        raise SubmissionImportError(f"{source} cannot be read to its end: {one_line(str(error), MAX_REASON)}") from None
    if not submissions:
        raise SubmissionImportError(
            f"{source} holds no notebook of a released assignment, like NAME/{course.assignments[0]}.ipynb"
        )
    return len(submissions), ignored


def _replace(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`. It is empty if none of its files could be written."""
    new.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    new.replace(target)


def _sort(source: Path, course: Course, target: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Write the submissions' files to `target`/student/assignment.

    Returns the students and assignments, and the files that look like work and were ignored.
    """
    assignments = set(course.assignments)
    with_program = {name for name in assignments if _has_program(course, name)}
    with _open_files(source) as files:
        given = [path for path, _ in files]
    places = platforms.arrange(given, {ENTRY, *(f"{name}.ipynb" for name in assignments)})
    paths = [place for path in given if (place := places.get(path, path))]
    outer_folders = 1 if _is_wrapped(paths, assignments) else 0  # around the students' folders
    notebooks = _notebook_folders([_without_top(path, outer_folders) for path in paths], assignments)
    counts: Counter[str] = Counter()
    ignored = []
    with _open_files(source) as files:
        for full_path, read in files:
            if (place := places.get(full_path, full_path)) is None:
                ignored.append(f"{full_path} (an earlier attempt)")
                continue
            if not (path := _without_top(place, outer_folders)).parts:
                continue
            student = student_id(path.parts[0])
            owners = list(_assignments_of(path, notebooks.get(student, {}), with_program))
            for assignment, inner in owners:
                is_notebook = inner.name == f"{assignment}.ipynb"
                counts[student] += not is_notebook
                if counts[student] <= MAX_STUDENT_FILES or is_notebook:
                    max_bytes = MAX_BYTES if is_notebook else intake.MAX_SOURCE_BYTES
                    _write(target / student / assignment / inner, read(max_bytes + 1))
            if not owners and WORK.fullmatch(path.name):
                ignored.append(str(full_path))
    return sorted((student, assignment) for student, found in notebooks.items() for assignment in found), ignored


def _without_top(path: PurePosixPath, folders: int) -> PurePosixPath:
    """A path without its first `folders` folders."""
    return PurePosixPath(*path.parts[folders:])


def _is_wrapped(paths: list[PurePosixPath], assignments: set[str]) -> bool:
    """Whether all files are in one folder, in which several folders have the same notebook: those are the students'."""
    if len({path.parts[0] for path in paths}) != 1:
        return False
    folders: dict[str, set[str]] = {}
    for path in paths:
        if path.suffix == ".ipynb" and path.stem in assignments:
            folders.setdefault(path.stem, set()).add(path.parts[1] if len(path.parts) > 2 else "")
    return any(len(names) > 1 and "" not in names for names in folders.values())


def _notebook_folders(paths: list[PurePosixPath], assignments: set[str]) -> NotebookFolders:
    """The folder of each student's notebook of each assignment. Of several notebooks, the highest in the tree counts.

    Raises SubmissionImportError if two students would have the same id.
    """
    notebooks: NotebookFolders = {}
    origins: dict[str, str] = {}  # the folder that a student's id was made from
    for path in paths:
        if path.suffix != ".ipynb" or path.stem not in assignments or len(path.parts) < 2:
            continue
        top = path.parts[0]
        student = student_id(top)
        if _person(origins.setdefault(student, top)) != _person(top):
            both = " and ".join(map(quoted, (origins[student], top)))
            raise SubmissionImportError(f"{both} would both be the student {student}: rename one of them")
        folders = notebooks.setdefault(student, {})
        existing = folders.get(path.stem, path.parent)
        folders[path.stem] = min(existing, path.parent, key=lambda folder: (len(folder.parts), folder))
    return notebooks


def _has_program(course: Course, assignment: str) -> bool:
    """Whether the released notebook asks for a four-worker program, or is not there and may ask for one."""
    notebook = course.folder("release", ".", assignment) / f"{assignment}.ipynb"
    return not notebook.is_file() or FOUR_WORKERS in notebook.read_text(encoding="utf-8")


def _assignments_of(
    path: PurePosixPath, notebooks: dict[str, PurePosixPath], with_program: set[str]
) -> Iterator[tuple[str, PurePosixPath]]:
    """The assignments of a student that a file belongs to, and the file's path in each assignment's folder."""
    for assignment, folder in notebooks.items():
        if path.is_relative_to(folder):
            inner = path.relative_to(folder)
            is_program = inner.parts[0] == PROGRAM or str(inner) == ENTRY
            if (is_program and assignment in with_program) or str(inner) == f"{assignment}.ipynb":
                yield assignment, inner


def _person(top: str) -> str:
    """What distinguishes two students of one name: Moodle's number, or else the folder's name.

    Moodle's number is the same in all folders of a student in one archive.
    """
    match = MOODLE.fullmatch(top)
    return match[2] if match else top


def student_id(name: str) -> str:
    """A student's id from a folder's name: its plain letters. What Moodle puts behind a student's name is left out.

    A name without plain letters, like one in Cyrillic, becomes its hash, which is the same in every archive.
    """
    if match := MOODLE.fullmatch(name):
        name = match[1]
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._@+-]+", "-", plain).strip("-._@+")[:64]
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:12]
    return plain if STUDENT.fullmatch(plain) else f"name-{digest}"


def _write(path: Path, content: bytes) -> None:
    """Write a file. A file whose name cannot be written is left out, because it must not stop the class's import.

    Its name may be too long, or it may be in the place of a folder.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise


@contextmanager
def _open_files(source: Path) -> Iterator[Files]:
    """The regular files of a folder, .zip or .tar(.gz), by relative path. Raises SubmissionImportError for others."""
    if source.is_dir():
        yield _with_safe_paths(
            (str(path.relative_to(source)), _reader(partial(Path.open, mode="rb"), path))
            for path in sorted(source.rglob("*"))
            if _is_regular(path)
        )
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            members = (member for member in archive.infolist() if not member.is_dir())
            yield _with_safe_paths((member.filename, _reader(archive.open, member)) for member in members)
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as archive:
            members = (member for member in archive if member.isfile())
            yield _with_safe_paths((member.name, _reader(archive.extractfile, member)) for member in members)
    else:
        raise SubmissionImportError(f"{source} is no folder, .zip, .tar or .tar.gz archive")


def _with_safe_paths(files: Iterator[tuple[str, Read]]) -> Files:
    """The files whose path stays below the folder, without those in generated folders."""
    for count, (name, read) in enumerate(files):
        if count == MAX_FILES:
            raise SubmissionImportError(f"there are more than {MAX_FILES:,} files")
        path = PurePosixPath(name)
        if not path.is_absolute() and path.parts and not {"..", *GENERATED} & set(path.parts) and "\0" not in name:
            yield path, read


def _is_regular(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _reader(open_member: Callable, member: object) -> Read:
    def read(max_bytes: int) -> bytes:
        with open_member(member) as file:
            return file.read(max_bytes)

    return read
