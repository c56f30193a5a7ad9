"""Reads files that a submission may have written: regular files only, no links, bounded, never blocking."""

import os
import stat
from pathlib import Path


class UnreadableError(Exception):
    """The file is missing, not a regular file, or too large; the message is one line for the learner."""


def read(path: Path, most: int, tail: bool = False, owner: int | None = None) -> bytes:
    """The content of `path`, at most `most` bytes: more is refused, or with `tail` cut off at the front.

    A link is not followed, and a pipe or device that lies in a file's place is not waited for. With `owner`, a user's
    number, a file that belongs to somebody else is refused.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise UnreadableError(f"{path.name} was not written") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableError(f"{path.name} is not a regular file")
        if owner not in (None, found.st_uid):
            raise UnreadableError(f"{path.name} belongs to somebody else")
        if found.st_size > most and not tail:
            raise UnreadableError(f"{path.name} holds more than {most:,} bytes")
        return os.pread(descriptor, most, max(0, found.st_size - most))
    finally:
        os.close(descriptor)
