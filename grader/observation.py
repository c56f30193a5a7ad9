"""What was seen of a run: the workers' own lines (`rank<r>.jsonl`), read with limits, and figures drawn from them."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, NonNegativeInt, PositiveInt, ValidationError

from grader import untrusted

MAX_BYTES = 64 * 2**20  # a worker's file; an honest one has less than 2 MiB


class First(BaseModel, strict=True):
    """A worker's first line: hash of its weights before the first update, their bytes, Horovod's number of workers."""

    start: int
    bytes: NonNegativeInt
    size: PositiveInt


class Update(BaseModel, strict=True):
    """One update: learning rates by parameter group, indices of the training images used, hash of the weights after."""

    update: PositiveInt
    lr: list[float]
    images: list[NonNegativeInt]
    weights: int
    seconds: float


@dataclass
class Worker:
    """What one worker did; empty if it left no line that can be read."""

    first: First | None = None
    updates: list[Update] = field(default_factory=list)

    def images(self) -> list[int]:
        """All training images used, in order of use."""
        return [index for update in self.updates for index in update.images]


def read_worker(path: Path) -> Worker:
    """Read a worker's file up to its first line that is malformed or out of order; one that cannot be read is empty."""
    worker = Worker()
    try:
        text = untrusted.read(path, MAX_BYTES).decode(errors="replace")
    except untrusted.UnreadableError:
        return worker
    for line in text.splitlines():
        try:
            content = json.loads(line)
            if worker.first is None:
                worker.first = First.model_validate(content)
                continue
            update = Update.model_validate(content)
        except (ValueError, ValidationError):
            break
        if update.update != len(worker.updates) + 1:
            break
        worker.updates.append(update)
    return worker


@dataclass(frozen=True)
class Epoch:
    """How the workers divided the training images in one epoch: shares of all images, 0 to 1 and above."""

    covered: float
    repeated: float


def epochs(workers: list[Worker], count: int, train_images: int) -> list[Epoch]:
    """Split each worker's images into `count` equal parts and see how together they cover the training images."""
    parts = []
    for worker in workers:
        images = worker.images()
        length = len(images) // count
        parts.append([images[number * length : (number + 1) * length] for number in range(count)])
    result = []
    for number in range(count):
        used = [index for part in parts for index in part[number]]
        distinct = len(set(used))
        result.append(Epoch(distinct / train_images, (len(used) - distinct) / train_images))
    return result


def same_order(worker: Worker, count: int) -> bool:
    """Whether a worker used its images in the same order in its first two of `count` epochs."""
    images = worker.images()
    length = len(images) // count
    return count > 1 and images[:length] == images[length : 2 * length]


def first_difference(workers: list[Worker]) -> int | None:
    """The first update (from 1; 0: before the first) after which the workers' weights differ; None if they never do."""
    if len({worker.first.start if worker.first else None for worker in workers}) > 1:
        return 0
    for step, updates in enumerate(zip(*(worker.updates for worker in workers), strict=False), start=1):
        if len({update.weights for update in updates}) > 1:
            return step
    return None
