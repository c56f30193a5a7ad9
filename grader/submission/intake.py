"""Takes in a submission. It becomes a clean folder of regular files, with `train.py` at its top.

A submission counts as hostile. The names, the types, the sizes and the number of its files are checked while they are
read. This module writes each file of the clean folder itself.
"""

import hashlib
import string
import tempfile
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from grader.common.contract import ENTRY
from grader.common.text import quoted
from grader.submission import archives
from grader.submission.archives import DAMAGED, Entry, SubmissionError

# An honest submission stays below these limits. They keep a hostile one from filling the disk.
MAX_SOURCE_BYTES = 64 * 1024  # bytes of all files together
MAX_FILES = 100  # files; there may be as many folders too
MAX_DEPTH = 5  # levels; the file's name and each folder above it count as one
MAX_NAME_BYTES = 100  # bytes; this is for the name of one file or folder, without the folders above it
LETTERS = frozenset(string.ascii_letters + string.digits + " ._-" + "ßæÆœŒøØđĐłŁ")  # they may have accents

Name = tuple[str, ...]  # the folders come first, from the top down, and the file comes last


def take_in(submission: Path, target: Path) -> None:
    """Make `target` a folder with the submission's files, with `train.py` at its top.

    `submission` is a folder, a .zip, .tar or .tar.gz archive, or `train.py` itself. A folder or an archive may hold one
    more folder around all files. `target` must not exist, or it must be empty.

    Raises SubmissionError and leaves `target` as it was if the submission cannot be taken in. This is so if there is no
    `train.py`, if a file is a link or a device, if a name is not plain or occurs twice, or if there are more than
    MAX_FILES files or MAX_SOURCE_BYTES bytes.
    """
    shown = quoted(submission.name or str(submission))
    try:
        files = _collect(archives.entries(submission, shown))
    except DAMAGED:
        raise SubmissionError(f"{shown} cannot be read to its end: pack or copy it again") from None
    _write(_unwrapped(files, shown), target)


def read_files(submission: Path) -> dict[str, bytes]:
    """Return a submission's files by name, as `take_in` would write them. Raises SubmissionError as `take_in` does."""
    with tempfile.TemporaryDirectory(prefix="grader-intake-") as folder:
        source = Path(folder, "source")
        take_in(submission, source)
        return {str(path.relative_to(source)): path.read_bytes() for path in source.rglob("*") if path.is_file()}


def source_hash(source: Path) -> str:
    """Return one hash of all of a submission's files and their names."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _collect(entries: Iterable[Entry]) -> dict[Name, bytes]:
    """Return the contents of the files. They are checked and counted one by one."""
    files: dict[Name, bytes] = {}
    known: dict[Name, tuple[Name, bool]] = {}
    remaining = MAX_SOURCE_BYTES
    for name, read in entries:
        if archives.passed_over(name):
            continue
        path = _plain_name(name)
        _claim(path, read is not None, known)
        if read:
            files[path] = read(remaining + 1)
            remaining -= len(files[path])
        if remaining < 0:
            raise SubmissionError(f"with {quoted(name)} there are more than {MAX_SOURCE_BYTES:,} bytes of source")
        if len(files) > MAX_FILES or len(known) - len(files) > MAX_FILES:
            raise SubmissionError(f"there are more than {MAX_FILES} files or folders; hand in the source only")
    return files


def _plain_name(name: str) -> Name:
    """Return the parts of a name, with each accent and its letter as one character.

    Raises SubmissionError if another system or a reader could take the name for another one.
    """
    if len(name) > 2 * MAX_DEPTH * MAX_NAME_BYTES:  # normalising a long name is slow
        raise SubmissionError(f"the name {quoted(name)} is too long")
    parts = tuple(part for part in unicodedata.normalize("NFC", name).split("/") if part != ".")
    if not parts or not all(map(_plain, parts)):
        raise SubmissionError(
            f"rename {quoted(name)}: only Latin letters, digits, ._- and spaces between them, no '..'"
        )
    if len(parts) > MAX_DEPTH:
        raise SubmissionError(f"{quoted(name)} lies in more than {MAX_DEPTH - 1} folders")
    if any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise SubmissionError(f"{quoted(name)} has a name of more than {MAX_NAME_BYTES} bytes")
    return parts


def _plain(part: str) -> bool:
    """Return whether a part of a name is plain.

    It must consist of LETTERS and their accents. It must not be blank or `..`, and no system may shorten it.
    """
    letters = all(unicodedata.normalize("NFD", letter)[0] in LETTERS for letter in part)
    return letters and part != "" and part == part.strip() and not part.endswith(".")


def _claim(path: Name, is_file: bool, known: dict[Name, tuple[Name, bool]]) -> None:
    """Note a path and the folders above it in `known`, under the names that they have on a system that ignores case.

    Raises SubmissionError if a file occurs twice, or if two names differ only in case.
    """
    for depth in range(1, len(path) + 1):
        claim = (path[:depth], is_file and depth == len(path))
        folded = tuple(unicodedata.normalize("NFC", part.casefold()) for part in path[:depth])
        before = known.setdefault(folded, claim)
        if before is not claim and (before != claim or claim[1]):
            raise SubmissionError(f"{quoted('/'.join(path))} is there twice, or differs from another in case only")


def _unwrapped(files: dict[Name, bytes], shown: str) -> dict[Name, bytes]:
    """Return the files with paths that begin at the folder of `train.py`. This is the top, or the only folder there."""
    if (ENTRY,) in files:
        return files
    tops = {path[0] for path in files}
    if len(tops) == 1 and (*tops, ENTRY) in files:
        return {path[1:]: content for path, content in files.items()}
    raise SubmissionError(f"{shown} has no {ENTRY}: the file that is launched must have that name")


def _write(files: dict[Name, bytes], target: Path) -> None:
    """Make `target` a folder with exactly these files. If that fails, no file is written to it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".intake-", dir=target.parent) as part:
        whole = Path(part, "whole")
        for path, content in files.items():
            place = whole.joinpath(*path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        whole.rename(target)
