"""Names of submissions. A file's name can hold bytes that are no UTF-8, and control characters."""

import hashlib
import os
import re
import unicodedata

MAX_READABLE = 40  # characters of the readable part of a folder's name


def plain_name(name: str) -> str:
    """A file's name as text that every program can read. Bytes that are no UTF-8 become escape sequences."""
    return os.fsencode(name).decode(errors="backslashreplace")


def safe_name(name: str) -> str:
    """A folder's name for a submission: the harmless part of the submission's name, and a hash that makes it unique."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub("[^a-z0-9]+", "-", letters)[:MAX_READABLE].strip("-") or "submission"
    return f"{words}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
