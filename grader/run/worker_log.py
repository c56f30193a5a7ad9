"""Reads and checks a worker's log, `rank<r>.jsonl`, in the format of `log_format`. Its writer is not trusted."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter

from grader.common import untrusted
from grader.common.contract import MAX_WORKER_LOG_BYTES
from grader.run.hooks.grader_observer.log_format import End, First, Update

MAX_DEVICE_LENGTH, MAX_OPTIMIZER_LENGTH = 40, 80  # characters; PyTorch's own names are shorter
MAX_LINE_BYTES = 65536  # of the last line, which is read while the run goes on


def _check_first(line: First) -> First:
    if line.bytes < 0 or line.size < 1:
        raise ValueError("no weights have a negative size, and no run has less than one worker")
    if len(line.device) > MAX_DEVICE_LENGTH or len(line.optimizer) > MAX_OPTIMIZER_LENGTH:
        raise ValueError("the name of the device or of the optimizer is too long")
    return line


def _check_update(line: Update) -> Update:
    if line.update < 1 or line.calls < 0 or min(line.images, default=0) < 0:
        raise ValueError("updates are counted from 1, batches and images from 0")
    return line


def _check_end(line: End) -> End:
    if line.end < 0:
        raise ValueError("no worker makes a negative number of updates")
    return line


FIRST = TypeAdapter(Annotated[First, AfterValidator(_check_first)])
LATER = TypeAdapter(
    Annotated[
        Annotated[End, AfterValidator(_check_end)] | Annotated[Update, AfterValidator(_check_update)],
        Field(union_mode="left_to_right"),
    ]
)


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
    if worker.first is None:
        worker.first = FIRST.validate_json(text, strict=True)
        return True
    line = LATER.validate_json(text, strict=True)
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


def updates_so_far(path: Path) -> int:
    """The number in the last whole line of a worker's log; 0 while there is none."""
    try:
        lines = untrusted.read(path, MAX_LINE_BYTES, tail=True).split(b"\n")[:-1]
        number = json.loads(lines[-1]).get("update", 0)
    except (untrusted.UnreadableError, IndexError, ValueError, AttributeError, RecursionError):
        return 0
    return number if isinstance(number, int) and 0 < number < 2**31 else 0
