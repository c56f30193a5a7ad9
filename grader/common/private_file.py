"""Files that only their owner can read."""

import os
from collections.abc import Callable
from pathlib import Path


def once(path: Path, content: Callable[[], bytes]) -> bytes:
    """The content of a file that only its owner can read. The file is made if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content())
        part.replace(path)
    return path.read_bytes()
