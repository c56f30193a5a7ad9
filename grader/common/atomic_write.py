"""Writes files whole or not at all. If the writing is interrupted, the earlier file stays."""

import os
from pathlib import Path


def write_whole(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Writes a text file, and waits until it is on the disk. Its folder must exist. Line ends stay as they are."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding=encoding, newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
