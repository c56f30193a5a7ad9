"""Reads a submission: a folder, a .zip, .tar or .tar.gz archive, or `train.py` itself.

A submission may be hostile. It is unpacked only in memory, links are not followed, and every size is limited.
"""

import io
import os
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from grader.common import untrusted
from grader.common.contract import ENTRY
from grader.common.errors import GraderError
from grader.common.text import quoted

# This limit in bytes holds for the packed and for the unpacked archive. Files that are passed over count too. It is
# far above the limit on source code, because tools may add files like those in `.git`.
MAX_ARCHIVE_BYTES = 16 * 2**20
MAX_ARCHIVE_ENTRIES = 10_000  # entries of an archive; `zipfile` makes an object in memory for each of them
PASSED_OVER = frozenset({"__pycache__", ".git", ".ipynb_checkpoints", "__MACOSX", ".DS_Store"})
ZIP, GZIP = (b"PK\3\4", b"PK\5\6"), b"\x1f\x8b"  # how such archives begin
APPLE_DOUBLE = "._"  # macOS adds files to an archive whose names begin like this
DAMAGED = (
    OSError, EOFError, ValueError, IndexError, NotImplementedError, OverflowError, RuntimeError, struct.error,
    tarfile.TarError, zipfile.BadZipFile, zlib.error, untrusted.UnreadableError,
)  # fmt: skip

Reader = Callable[[int], bytes]  # a reader returns at most the given number of bytes of a file
Entry = tuple[str, Reader | None]  # the name is as it was found, and a folder has None for its reader


class SubmissionError(GraderError):
    """The submission cannot be launched. The message is one line for the learner."""


def entries(submission: Path, shown: str) -> Iterable[Entry]:
    """Return the entries of the submission, which are not read yet. `shown` is its name for a message.

    An archive is recognised by its content. Raises SubmissionError, or one of DAMAGED if it cannot be read.
    """
    try:
        found = submission.lstat()
    except (OSError, ValueError):
        raise SubmissionError(f"{shown} does not exist, or is closed to the grader") from None
    if stat.S_ISDIR(found.st_mode):
        return _folder_entries(submission)
    content = _read_file(submission, submission.name, MAX_ARCHIVE_BYTES + 1)
    if len(content) > MAX_ARCHIVE_BYTES or _is_packed(content):
        return packed_entries(content, shown)
    if submission.name == ENTRY:
        return [(ENTRY, lambda most: content[:most])]
    raise SubmissionError(f"{shown} is no folder, {ENTRY}, or .zip, .tar or .tar.gz archive")


def packed_entries(content: bytes, shown: str) -> Iterable[Entry]:
    """Return the entries of an archive with this content. `shown` is its name for a message. Raises like `entries`."""
    if len(content) > MAX_ARCHIVE_BYTES:
        raise SubmissionError(f"{shown} has more than {MAX_ARCHIVE_BYTES:,} bytes")
    if content.startswith(ZIP):
        return _zip_entries(content)
    if content.startswith(GZIP):
        return _tar_entries(_gunzip(content))
    if _is_tar(content):
        return _tar_entries(content)
    raise SubmissionError(f"{shown} is no .zip, .tar or .tar.gz archive")


def _is_packed(content: bytes) -> bool:
    return content.startswith((*ZIP, GZIP)) or _is_tar(content)


def passed_over(name: str) -> bool:
    """Return whether a tool left the file behind, so that it is not a part of the program."""
    return name == "." or any(part in PASSED_OVER or part.startswith(APPLE_DOUBLE) for part in name.split("/"))


def _folder_entries(folder: Path, above: str = "") -> Iterator[Entry]:
    """Yield the entries of a folder and its subfolders. Links are not followed, even if they appear meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        here = _held(descriptor, folder)
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name = above + entry.name
                if passed_over(entry.name):
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    yield name, partial(_read_file, here / entry.name, name)
                    continue
                yield name, None
                yield from _folder_entries(here / entry.name, f"{name}/")
    finally:
        os.close(descriptor)


def _held(descriptor: int, folder: Path) -> Path:
    """Return a path to an open folder. It still leads to this folder if another folder takes its place.

    On a system without /proc, the folder's own path is returned.
    """
    held = Path(f"/proc/self/fd/{descriptor}")
    return held if held.exists() else folder


def _read_file(path: Path, name: str, most: int) -> bytes:
    """Read a file on the disk. If the file has more than `most` bytes, only so many are read."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1):
        raise _link(name)
    if not stat.S_ISREG(found.st_mode):
        raise _irregular(name)
    return untrusted.read(path, most, tail=True)


def _link(name: str) -> SubmissionError:
    return SubmissionError(f"{quoted(name)} is a link; put the file itself there")


def _irregular(name: str) -> SubmissionError:
    return SubmissionError(f"{quoted(name)} is not a regular file")


def _zip_entries(content: bytes) -> Iterator[Entry]:
    # The entries are counted first, because zipfile makes an object of each.
    if content.count(b"PK\1\2") > MAX_ARCHIVE_ENTRIES:
        raise SubmissionError(f"the archive has more than {MAX_ARCHIVE_ENTRIES:,} entries; hand in the source only")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            name = zip_name(info)
            yield name.removesuffix("/"), None if name.endswith("/") else partial(_read_zipped, archive, info, name)


def zip_name(info: zipfile.ZipInfo) -> str:
    """Return the whole name. `info.filename` ends at a NUL. macOS writes UTF-8 without setting the flag for it."""
    name = info.orig_filename
    try:
        return name if info.flag_bits & 0x800 else name.encode("cp437").decode()
    except UnicodeError:
        return name


def _read_zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, most: int) -> bytes:
    kind = stat.S_IFMT(info.external_attr >> 16)  # it is 0 if the archive was not made on Unix
    if kind == stat.S_IFLNK:
        raise _link(name)
    if kind not in (0, stat.S_IFREG):
        raise _irregular(name)
    if info.flag_bits & 0x41:
        raise SubmissionError(f"{quoted(name)} is encrypted; pack it without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # other types need memory without limit
        raise SubmissionError(f"{quoted(name)} is packed in an unusual way; use plain zip")
    with archive.open(info) as stream:
        return stream.read(most)


def _gunzip(content: bytes) -> bytes:
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    plain = stream.decompress(content, MAX_ARCHIVE_BYTES + 1)
    if len(plain) > MAX_ARCHIVE_BYTES:
        raise SubmissionError(f"the archive unpacks to more than {MAX_ARCHIVE_BYTES:,} bytes; hand in the source only")
    if not stream.eof:
        raise EOFError
    return plain


BLOCK = tarfile.BLOCKSIZE
WITHOUT_DATA = (
    tarfile.DIRTYPE, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
)  # fmt: skip
REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
ABOUT_THE_NEXT = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME)
NOT_NEEDED = (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK)
RECORD = re.compile(rb"([1-9]\d{0,6}) ")


def _header(block: bytes) -> tarfile.TarInfo:
    return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")


def _is_tar(content: bytes) -> bool:
    try:
        return bool(_header(content[:BLOCK]))
    except tarfile.HeaderError:
        return False


def _tar_entries(content: bytes) -> Iterator[Entry]:
    """Yield the entries of a tar archive, header block by header block.

    This does not use the loop of `tarfile`, because in some versions of Python an archive can keep it busy for hours.
    """
    place, given = 0, ""
    while (block := content[place : place + BLOCK]) != bytes(BLOCK):
        header = _header(block)
        size = 0 if header.type in WITHOUT_DATA else header.size
        place += BLOCK
        if not 0 <= size <= len(content) - place:
            raise EOFError
        data = content[place : place + size]
        place += -(-size // BLOCK) * BLOCK
        if header.type in ABOUT_THE_NEXT:
            given = _given_name(header, data) or given
        elif header.type not in NOT_NEEDED:
            name, given = given or header.name, ""
            yield (
                (name.removesuffix("/"), None) if header.isdir() else (name, partial(_read_tarred, header, name, data))
            )


def _given_name(header: tarfile.TarInfo, data: bytes) -> str:
    """Return the name that an extended header gives to the entry after it. It is empty if the header gives none."""
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return data.rstrip(b"\0").decode(errors="surrogateescape")
    name, place = b"", 0
    while place < len(data):
        record = RECORD.match(data, place)
        end = place + int(record[1]) if record else 0
        if not record or not record.end() < end <= len(data):
            raise EOFError
        key, _, value = data[record.end() : end - 1].partition(b"=")
        name, place = (value if key == b"path" else name), end
    return name.decode(errors="surrogateescape")


def _read_tarred(header: tarfile.TarInfo, name: str, data: bytes, most: int) -> bytes:
    if header.islnk() or header.issym():
        raise _link(name)
    if header.type not in REGULAR:
        raise _irregular(name)
    return data[:most]
