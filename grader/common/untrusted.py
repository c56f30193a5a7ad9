"""Reads files that a submission may have written.

Only regular files are read, and no links. The size is limited, and a read never waits.
"""

import os
import stat
from pathlib import Path


class UnreadableError(Exception):
    """The file is missing, not a regular file, or too large. The message is one line for the learner."""


def read(path: Path, max_bytes: int, tail: bool = False, owner: int | None = None) -> bytes:
    """The content of `path`. More than `max_bytes` are refused or, with `tail`, cut off at the front.

    A link is not followed. A pipe or a device is refused without waiting for it. With `owner`, a user's number, a
    file of another user is refused.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise UnreadableError(f"{path.name} was not written") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError(f"{path.name} is not a regular file")
        if owner not in (None, status.st_uid):
            raise UnreadableError(f"{path.name} belongs to somebody else")
        if status.st_size > max_bytes and not tail:
            raise UnreadableError(f"{path.name} holds more than {max_bytes:,} bytes")
        return os.pread(descriptor, max_bytes, max(0, status.st_size - max_bytes))
    finally:
        os.close(descriptor)
