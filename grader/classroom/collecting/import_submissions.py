"""Takes submissions from a folder, or an archive from an LMS, into nbgrader's `submitted/`.

Its top level has a folder a student; below it, anywhere, the notebooks under their released names, and beside notebook
08 the program's folder. Moodle's folders ("Name_123_assignsubmission_file") count by the name: the number is another
one in each of Moodle's assignments. Nothing is unpacked: only files with those names are read, and what they hold is
looked at when it is graded. nbgrader's time stamp and secret are not taken: whoever handed in could have written them.
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

from grader.classroom.collecting.student_submission import PROGRAM, STUDENT
from grader.classroom.course import Course
from grader.common.contract import ENTRY
from grader.common.errors import GraderError
from grader.common.text import one_line, quoted
from grader.submission import archives, intake
from grader.submission.notebook import MAX_BYTES

MOODLE = re.compile(r"(.+)_(\d+)_assignsubmission_.*", re.DOTALL)
MAX_FILES = 100_000  # looked at
MAX_STUDENT_FILES = 1000  # of a student; intake says what is too many for a program
UNHOLDABLE = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)
WORK = re.compile(r".*\.(ipynb|py|zip|tar|tgz|gz|bz2|xz|7z|rar)", re.IGNORECASE | re.DOTALL)  # missed if not taken
NOISE = {".ipynb_checkpoints", "__MACOSX"}  # folders that nobody made to be handed in

Read = Callable[[int], bytes]  # gives at most so many bytes of a file


class ArrivalError(GraderError):
    """Submissions that cannot be taken in; the message is one line."""


def take(source: Path, course: Course) -> tuple[int, list[str]]:
    """Put what `source` holds into `submitted/`, in place of what those students had there.

    Returns how many submissions these were, and the files that look like work and were not taken. Raises ArrivalError.
    """
    if not source.exists():
        raise ArrivalError(f"{source} does not exist")
    try:
        with tempfile.TemporaryDirectory(prefix="arrivals-", dir=course.root) as place:
            found, left = _sort(source, course, Path(place))
            for student, assignment in found:
                target = course.folder("submitted", student, assignment)
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                Path(place, student, assignment).mkdir(parents=True, exist_ok=True)  # also if nothing could be written
                Path(place, student, assignment).replace(target)
    except archives.DAMAGED as error:
        raise ArrivalError(f"{source} cannot be read to its end: {one_line(str(error), 200)}") from None
    if not found:
        raise ArrivalError(
            f"{source} holds no notebook of a released assignment, like NAME/{course.assignments[0]}.ipynb"
        )
    return len(found), left


def _sort(source: Path, course: Course, place: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Write the files that matter to `place`/student/assignment; the students and assignments, and what was left."""
    assignments = set(course.assignments)
    with _files(source) as files:
        paths = [path for path, _ in files]
    around = 1 if _wrapped(paths, assignments) else 0  # folders outside the students'
    homes = _homes([_below(path, around) for path in paths], assignments)
    counts: Counter[str] = Counter()
    left = []
    with _files(source) as files:
        for whole, read in files:
            if not (path := _below(whole, around)).parts:
                continue
            student, belongs = student_of(path.parts[0]), False
            for assignment, inner in _beside(homes.get(student, {}), path):
                belongs = True
                notebook = inner.name == f"{assignment}.ipynb"
                counts[student] += not notebook
                if counts[student] <= MAX_STUDENT_FILES or notebook:
                    most = MAX_BYTES if notebook else intake.MAX_SOURCE_BYTES
                    _write(place / student / assignment / inner, read(most + 1))
            if not belongs and WORK.fullmatch(path.name):
                left.append(str(whole))
    return sorted((student, assignment) for student, found in homes.items() for assignment in found), left


def _below(path: PurePosixPath, folders: int) -> PurePosixPath:
    return PurePosixPath(*path.parts[folders:])


def _wrapped(paths: list[PurePosixPath], assignments: set[str]) -> bool:
    """Whether all lies in one folder, in which several folders have the same notebook: these are the students'."""
    places: dict[str, set[str]] = {}
    for path in paths:
        if path.suffix == ".ipynb" and path.stem in assignments:
            places.setdefault(path.stem, set()).add(path.parts[1] if len(path.parts) > 2 else "")
    one = len({path.parts[0] for path in paths}) == 1
    return one and any(len(folders) > 1 and "" not in folders for folders in places.values())


def _homes(paths: list[PurePosixPath], assignments: set[str]) -> dict[str, dict[str, PurePosixPath]]:
    """By student and assignment the folder of the notebook; of several the one that lies highest."""
    homes: dict[str, dict[str, PurePosixPath]] = {}
    origins: dict[str, str] = {}  # the folder that a student's id was made from
    for path in paths:
        if path.suffix != ".ipynb" or path.stem not in assignments or len(path.parts) < 2:
            continue
        student, top = student_of(path.parts[0]), path.parts[0]
        if _person(origins.setdefault(student, top)) != _person(top):
            both = " and ".join(map(quoted, (origins[student], top)))
            raise ArrivalError(f"{both} would both be the student {student}: rename one of them")
        found = homes.setdefault(student, {})
        had = found.get(path.stem, path.parent)
        found[path.stem] = min(had, path.parent, key=lambda home: (len(home.parts), home))
    return homes


def _beside(homes: dict[str, PurePosixPath], path: PurePosixPath) -> Iterator[tuple[str, PurePosixPath]]:
    """The assignments, of those by folder in `homes`, that a file belongs to, and its place there."""
    for assignment, home in homes.items():
        if path.is_relative_to(home):
            inner = path.relative_to(home)
            if inner.parts[0] == PROGRAM or str(inner) in (ENTRY, f"{assignment}.ipynb"):
                yield assignment, inner


def _person(top: str) -> str:
    """What tells two students of one name apart: Moodle's number, which both folders of a student have, or the name."""
    found = MOODLE.fullmatch(top)
    return found[2] if found else top


def student_of(name: str) -> str:
    """A student's id from a folder's name, Moodle's without what follows the name: its plain letters.

    Where there are none, as of names in Cyrillic, it is made of the name's hash: the same in every archive.
    """
    if found := MOODLE.fullmatch(name):
        name = found[1]
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._@+-]+", "-", plain).strip("-._@+")[:64]
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:12]
    return plain if STUDENT.fullmatch(plain) else f"name-{digest}"


def _write(path: Path, content: bytes) -> None:
    """Write a file; one that no folder can hold (a name too long, a file where a folder is) is not its class's loss."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        if error.errno not in UNHOLDABLE:
            raise


@contextmanager
def _files(source: Path) -> Iterator[Iterator[tuple[PurePosixPath, Read]]]:
    """The regular files of a folder, .zip or .tar(.gz), with plain relative paths. Raises ArrivalError."""
    if source.is_dir():
        yield _plain(
            (str(path.relative_to(source)), _opened(partial(Path.open, mode="rb"), path))
            for path in sorted(source.rglob("*"))
            if _regular(path)
        )
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            yield _plain((one.filename, _opened(archive.open, one)) for one in archive.infolist() if not one.is_dir())
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as archive:
            yield _plain((one.name, _opened(archive.extractfile, one)) for one in archive if one.isfile())
    else:
        raise ArrivalError(f"{source} is no folder, .zip, .tar or .tar.gz archive")


def _plain(files: Iterator[tuple[str, Read]]) -> Iterator[tuple[PurePosixPath, Read]]:
    for count, (name, read) in enumerate(files):
        if count == MAX_FILES:
            raise ArrivalError(f"there are more than {MAX_FILES:,} files")
        path = PurePosixPath(name)
        if not path.is_absolute() and path.parts and not {"..", *NOISE} & set(path.parts) and "\0" not in name:
            yield path, read


def _regular(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _opened(opened: Callable, one: object) -> Read:
    def read(most: int) -> bytes:
        with opened(one) as file:
            return file.read(most)

    return read
