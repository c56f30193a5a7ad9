"""Reads the files of a download: a folder or an archive of a class, and the archives that learners have put into it.

Nothing is unpacked on the disk. No link is followed, and no path leads out of the download.
"""

import io
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from grader.classroom.collecting import platforms
from grader.classroom.collecting.student_submission import PROGRAM
from grader.common.errors import GraderError
from grader.submission import archives

MAX_FILES = 100_000  # of a class, so that an archive of endless entries ends
MAX_INNER_FILES = 1000  # of a learner's archive, more than `intake` accepts of a program; a tool's files do not count
OTHER_ARCHIVE = re.compile(r".*\.(7z|rar|gz|bz2|xz|zst)", re.IGNORECASE | re.DOTALL)
UNPACKED = "it was opened, and its files follow"
LINK = "it is a link, and links are not followed"
IRREGULAR = "it is no regular file"
ENCRYPTED = "it is encrypted; ask for it without a password"

Read = Callable[[int], bytes]  # reads a file, up to a number of bytes


class SubmissionImportError(GraderError):
    """The submissions cannot be imported. The message is one line."""


@dataclass(frozen=True)
class File:
    """A file of the download. `name` is its path as it was found, and `path` is the same path if it is safe.

    `read` reads its content. If it cannot be read, or is an archive that was opened, `problem` says so.
    """

    name: str
    path: PurePosixPath
    read: Read | None = None
    problem: str = ""


@contextmanager
def open_download(source: Path) -> Iterator[Iterator[File]]:
    """The files of a folder, .zip or .tar(.gz). The files of an archive in it come after the archive.

    Raises SubmissionImportError if `source` is none of them, or has more than MAX_FILES files.
    """
    if source.is_dir():
        yield _limited(_with_inner(_of_folder(source)))
    elif _begins_as_zip(source) and zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            yield _limited(_with_inner(_of_zip(archive)))
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as archive:
            yield _limited(_with_inner(_of_tar(archive)))
    else:
        raise SubmissionImportError(f"{source} is no folder, .zip, .tar or .tar.gz archive")


def _begins_as_zip(source: Path) -> bool:
    """Whether a file begins like a .zip. `zipfile` looks at the end, where a .tar may have a learner's .zip."""
    with source.open("rb") as file:
        return file.read(len(archives.ZIP[0])) in archives.ZIP


def _of_folder(folder: Path) -> Iterator[File]:
    for path in sorted(folder.rglob("*")):
        kind = path.lstat().st_mode
        if not stat.S_ISDIR(kind):
            problem = LINK if stat.S_ISLNK(kind) else "" if stat.S_ISREG(kind) else IRREGULAR
            yield _file(str(path.relative_to(folder)), partial(_read, partial(path.open, "rb")), problem)


def _of_zip(archive: zipfile.ZipFile) -> Iterator[File]:
    for member in archive.infolist():
        name = archives.zip_name(member)
        if not name.endswith("/"):
            is_link, is_encrypted = stat.S_ISLNK(member.external_attr >> 16), member.flag_bits & 1
            problem = LINK if is_link else ENCRYPTED if is_encrypted else ""
            yield _file(name, partial(_read, partial(archive.open, member)), problem)


def _of_tar(archive: tarfile.TarFile) -> Iterator[File]:
    for member in archive:
        if not member.isdir():
            problem = LINK if member.issym() or member.islnk() else "" if member.isfile() else IRREGULAR
            yield _file(member.name, partial(_read, partial(archive.extractfile, member)), problem)


def _read(open_file: Callable[[], io.BufferedIOBase], max_bytes: int) -> bytes:
    with open_file() as file:
        return file.read(max_bytes)


def _file(name: str, read: Read | None, problem: str = "") -> File:
    """A file whose path stays below the download's folder, or one with a problem."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        return File(name, PurePosixPath(), problem="its path leads out of the download")
    return File(name, path, None if problem else read, problem)


def _with_inner(files: Iterable[File]) -> Iterator[File]:
    """The files, and after each archive its own files. An archive in a program's folder or in another one stays closed.

    An archive of which a tool has made copies, as macOS does in `__MACOSX`, is not opened either.
    """
    for file in files:
        is_archive = platforms.without_archive(file.path.name) != file.path.name
        if file.read is None or not is_archive or PROGRAM in file.path.parts or archives.passed_over(str(file.path)):
            closed = OTHER_ARCHIVE.fullmatch(file.path.name) and not file.problem
            yield File(file.name, file.path, problem="ask for a .zip in its place, or unpack it") if closed else file
            continue
        inner, problem = _inner(file)
        yield File(file.name, file.path, problem=problem or UNPACKED)
        yield from inner


def _inner(archive: File) -> tuple[list[File], str]:
    """The files of a learner's archive, and why it cannot be opened, or ""."""
    files: list[File] = []
    remaining, own = archives.MAX_ARCHIVE_BYTES, 0
    try:
        for name, read in archives.packed_entries(archive.read(remaining + 1), "it"):
            if read is None:
                continue
            by_a_tool = archives.passed_over(name)
            content, problem = (b"", "") if by_a_tool else _content(read, remaining + 1)
            remaining -= len(content)
            own += not by_a_tool
            files.append(_file(f"{archive.name}/{name}", partial(_cut, content), problem))
            if own > MAX_INNER_FILES or len(files) > archives.MAX_ARCHIVE_ENTRIES or remaining < 0:
                most = f"{MAX_INNER_FILES:,} files or {archives.MAX_ARCHIVE_BYTES:,} bytes"
                return [], f"it holds more than {most}; ask for the notebook and the program only"
    except archives.SubmissionError as error:
        return [], str(error)
    except archives.DAMAGED:
        return [], "it cannot be read to its end; ask for it again"
    return files, ""


def _content(read: Read, max_bytes: int) -> tuple[bytes, str]:
    """A file of a learner's archive, and why it cannot be read, or "": it may be a link."""
    try:
        return read(max_bytes), ""
    except archives.SubmissionError as error:
        return b"", str(error)


def _cut(content: bytes, max_bytes: int) -> bytes:
    return content[:max_bytes]


def _limited(files: Iterator[File]) -> Iterator[File]:
    for count, file in enumerate(files):
        if count == MAX_FILES:
            raise SubmissionImportError(f"there are more than {MAX_FILES:,} files")
        yield file
