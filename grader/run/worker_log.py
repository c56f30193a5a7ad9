"""What was seen of a run: the workers' own lines (`rank<r>.jsonl`), read with limits, and figures drawn from them."""

import json
import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, ValidationError

from grader.common import untrusted

MAX_BYTES = 16 * 2**20  # a worker's file; an honest one has less than 4 MiB


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
        text = untrusted.read(path, MAX_BYTES).decode(errors="replace")
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


@dataclass(frozen=True)
class Epoch:
    """How the workers divided the training images in one epoch: shares of all images, 0 to 1 and above."""

    covered: float
    repeated: float


def epochs(workers: list[Worker], train_images: int) -> list[Epoch]:
    """For each epoch, a whole number of them in what was seen, how together the workers cover the training images.

    An epoch has passed when the workers together have used as many images as there are.
    """
    all_images = [worker.images() for worker in workers]
    count = round(sum(map(len, all_images)) / train_images)
    result = []
    for number in range(count):
        used = [index for images in all_images for index in _part(images, number, count)]
        distinct = len(set(used))
        result.append(Epoch(distinct / train_images, (len(used) - distinct) / train_images))
    return result


def _part(images: list[int], number: int, count: int) -> list[int]:
    length = len(images) // count
    return images[number * length : (number + 1) * length]


def repeated_at_once(workers: list[Worker]) -> float:
    """The share of images that several workers used in one and the same update: 0 if each has its own."""
    used = distinct = 0
    for updates in zip(*(worker.updates for worker in workers), strict=False):
        images = [set(update.images) for update in updates]
        used, distinct = used + sum(map(len, images)), distinct + len(set().union(*images))
    return 1 - distinct / used if used else 0.0


def same_order(worker: Worker, count: int) -> bool:
    """Whether a worker used its images in the same order in its first two of `count` epochs."""
    images = worker.images()
    return count > 1 and _part(images, 0, count) == _part(images, 1, count)


def first_difference(workers: list[Worker]) -> int | None:
    """The first update (from 1; 0: before the first) after which the workers' weights differ; None if they never do."""
    if len({worker.first.start if worker.first else None for worker in workers}) > 1:
        return 0
    for step, updates in enumerate(zip(*(worker.updates for worker in workers), strict=False), start=1):
        if len({update.weights for update in updates}) > 1:
            return step
    return None


@dataclass(frozen=True)
class Averaging:
    """How one update's applied gradients compare with the workers' own ones.

    `fit`: the least cosine, over the workers, between what was applied and the mean of the workers' gradients.
    `alone`: the same with each worker's own gradient. `first`: with worker 0's. `scale`: length of what was applied
    divided by that of the mean (4 for a sum over 4 workers, less than 1 where gradients are clipped).
    """

    update: int
    fit: float
    alone: float
    first: float
    scale: float


def averaging(workers: list[Worker]) -> list[Averaging]:
    """One entry for each update that all workers made and whose gradients were seen on all, finite and not zero."""
    found = []
    for updates in zip(*(worker.updates for worker in workers), strict=False):
        own, applied = [update.local for update in updates], [update.applied for update in updates]
        if not all(vector and len(vector) == 8 and _usable(vector) for vector in own + applied):
            continue
        mean = [statistics.fmean(column) for column in zip(*own, strict=True)]
        if not _usable(mean):
            continue
        found.append(
            Averaging(
                updates[0].update,
                fit=min(cosine(vector, mean) for vector in applied),
                alone=min(map(cosine, applied, own)),
                first=min(cosine(vector, own[0]) for vector in applied),
                scale=statistics.fmean(math.hypot(*vector) for vector in applied) / math.hypot(*mean),
            )
        )
    return found


def _usable(vector: list[float]) -> bool:
    """Whether angles can be computed with it: not zero, not a number that is none, nothing that overflows."""
    return 1e-30 < math.hypot(*vector) < 1e30


def cosine(one: list[float], other: list[float]) -> float:
    """Cosine of the angle between two vectors that are not zero, -1 to 1."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))
