"""Reads and checks a worker's log, `rank<r>.jsonl`, in the format of `log_format`. Its writer is not trusted."""

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from grader.common import untrusted
from grader.common.contract import MAX_WORKER_LOG_BYTES
from grader.run.hooks.grader_observer.log_format import FROZEN, End, First, Update

MAX_DEVICE_LENGTH, MAX_OPTIMIZER_LENGTH = 40, 80  # characters; PyTorch's own names are shorter
MAX_LINE_BYTES = 65536  # of the last line, which is read while the run goes on
MAX_TAIL_BYTES = 2**20  # of the last lines, which are read when the grader asks for an update's weights
MAX_COMMITMENT_LENGTH = 64  # characters; a SHA-256 in hexadecimal digits

FIRST = TypeAdapter(First)
LATER = TypeAdapter(Annotated[End | Update, Field(union_mode="left_to_right")])


def _plausible(line: First | Update | End) -> bool:
    """Whether the numbers and names of a line can be a worker's. The types of its fields are right already."""
    match line:
        case First():
            names = len(line.device) <= MAX_DEVICE_LENGTH and len(line.optimizer) <= MAX_OPTIMIZER_LENGTH
            return names and line.bytes >= 0 and line.size >= 1 and _short(line.commitment)
        case Update():
            positive = line.update >= 1 and min(line.calls, line.test_images) >= 0 and min(line.images, default=0) >= 0
            return positive and min(line.network or [0]) >= FROZEN and _short(line.commitment)
        case End():
            return line.end >= 0


def _short(commitment: str | None) -> bool:
    return commitment is None or len(commitment) <= MAX_COMMITMENT_LENGTH


@dataclass
class Worker:
    """What one worker did; empty if it left no line that can be read. `end` is None if it did not end by itself."""

    first: First | None = None
    updates: list[Update] = field(default_factory=list)
    end: End | None = None

    def images(self) -> list[int]:
        """All training images used, in order of use."""
        return [index for update in self.updates for index in update.images]

    def wrote(self) -> set[str]:
        """Names of the files that it opened for writing, or renamed, in the output folder."""
        lines = [*self.updates, self.end] if self.end else self.updates
        return {name for line in lines for name in line.wrote}


def read_worker(path: Path) -> Worker:
    """Read a worker's log up to its first line that is malformed or out of order; one that cannot be read is empty."""
    worker = Worker()
    try:
        content = untrusted.read(path, MAX_WORKER_LOG_BYTES)
    except untrusted.UnreadableError:
        return worker
    for line in content.split(b"\n"):
        try:
            if not _add(worker, line):
                break
        except ValueError:
            break
    return worker


def _add(worker: Worker, text: bytes) -> bool:
    """Add one line to a worker. Returns whether more may follow. Raises ValueError if the line is malformed."""
    kind = LATER if worker.first else FIRST
    line = kind.validate_json(text, strict=True)
    if not _plausible(line):
        return False
    if isinstance(line, First):
        worker.first = line
        return True
    if isinstance(line, End):
        worker.end = line
        return False
    if worker.updates and line.update == len(worker.updates):
        worker.updates[-1] = line  # a second optimizer took part in the update
        return True
    if line.update != len(worker.updates) + 1:
        return False
    worker.updates.append(line)
    return True


def last_updates(path: Path, count: int) -> dict[int, Update]:
    """The last `count` updates of a worker's log, by number; those that cannot be read are left out."""
    found: dict[int, Update] = {}
    with contextlib.suppress(untrusted.UnreadableError):
        for text in reversed(untrusted.read(path, MAX_TAIL_BYTES, tail=True).split(b"\n")[:-1]):
            with contextlib.suppress(ValueError):
                line = LATER.validate_json(text, strict=True)
                if isinstance(line, Update) and _plausible(line):
                    found.setdefault(line.update, line)  # of two lines of one update the later one counts
            if len(found) == count:
                break
    return found


def ended(path: Path) -> bool:
    """Whether the last whole line of a worker's log is that of its end."""
    return "end" in _last_line(path)


def updates_so_far(path: Path) -> int:
    """The number in the last whole line of a worker's log; 0 while there is none."""
    number = _last_line(path).get("update", 0)
    return number if isinstance(number, int) and 0 < number < 2**31 else 0


def _last_line(path: Path) -> dict:
    """The last whole line of a log; an empty one while there is none that can be read."""
    try:
        line = json.loads(untrusted.read(path, MAX_LINE_BYTES, tail=True).split(b"\n")[-2])
    except (untrusted.UnreadableError, IndexError, ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}
