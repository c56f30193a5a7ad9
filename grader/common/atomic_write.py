"""Files that appear whole or not at all: whoever is interrupted while writing leaves what was there before."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a text file in UTF-8, lasting. Its folder must be there."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
