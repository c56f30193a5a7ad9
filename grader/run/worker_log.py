"""Reads what the observer wrote inside each worker: `rank<r>.jsonl`, one line per update."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from grader.common import untrusted
from grader.common.contract import MAX_WORKER_LOG_BYTES


class First(BaseModel, strict=True):
    """A worker's first line: hashes before the first update, the weights' bytes, Horovod's number of workers."""

    start: int
    buffers: int | None
    bytes: NonNegativeInt
    size: PositiveInt
    device: str = Field(max_length=40)
    optimizer: str = Field(max_length=80)


class Update(BaseModel, strict=True):
    """One update. `images`: indices of the training images used, in `calls` batches; `weights`: hash after it.

    `local` and `applied`: eight random projections of the gradient that this worker computed itself, and of the one
    that its optimizer applied. `loss`: mean training loss of this worker's images, if a loss module computed it.
    """

    update: PositiveInt
    lr: list[float]
    images: list[NonNegativeInt]
    calls: NonNegativeInt
    weights: int
    local: list[float] | None
    applied: list[float] | None
    loss: float | None
    wrote: list[str]
    seconds: float


class End(BaseModel, strict=True):
    """A worker's last line: hash of its network's buffers when it ended, files written since the last update."""

    end: NonNegativeInt
    buffers: int | None
    wrote: list[str]


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
    """Read a worker's file up to its first line that is malformed or out of order; one that cannot be read is empty."""
    worker = Worker()
    try:
        text = untrusted.read(path, MAX_WORKER_LOG_BYTES).decode(errors="replace")
    except untrusted.UnreadableError:
        return worker
    for line in text.split("\n"):
        try:
            if not _add(worker, json.loads(line)):
                break
        except (ValueError, RecursionError, ValidationError):
            break
    return worker


def _add(worker: Worker, content: object) -> bool:
    """Add one line's content to a worker; whether it was an update or the first line, in order."""
    if worker.first is None:
        worker.first = First.model_validate(content)
        return True
    if isinstance(content, dict) and "end" in content:
        worker.end = End.model_validate(content)
        return False
    update = Update.model_validate(content)
    if worker.updates and update.update == len(worker.updates):
        worker.updates[-1] = update  # a second optimizer took part in it
        return True
    if update.update != len(worker.updates) + 1:
        return False
    worker.updates.append(update)
    return True


def updates_so_far(path: Path) -> int:
    """The number in the last whole line of a worker's file; 0 while there is none."""
    try:
        lines = untrusted.read(path, 65536, tail=True).split(b"\n")[:-1]
        number = json.loads(lines[-1]).get("update", 0)
    except (untrusted.UnreadableError, IndexError, ValueError, AttributeError, RecursionError):
        return 0
    return number if isinstance(number, int) and 0 < number < 2**31 else 0
