"""Writes files whole or not at all. If the writing is interrupted, the earlier file stays."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Writes a text file in UTF-8, and waits until it is on the disk. Its folder must exist."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
