"""Writes a worker's log and its stacks."""

import json
import os

from .log_format import End, First, Frame, Update


class LogWriter:
    """Writes `rank<r>.jsonl` and `stack<r>.jsonl` in a folder. Raises FileExistsError if the log exists already."""

    def __init__(self, folder: str, rank: int):
        self.log = create(f"{folder}/rank{rank}.jsonl")
        self.stacks = create(f"{folder}/stack{rank}.jsonl")

    def write(self, line: First | Update | End) -> None:
        self.log.write(json.dumps(vars(line)) + "\n")

    def write_stack(self, frames: list[Frame]) -> None:
        self.stacks.write(json.dumps(frames) + "\n")


def create(path: str):
    """Open a file that must not exist yet. It is flushed after each line, so that readers see each line at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    return os.fdopen(descriptor, "w", buffering=1)
