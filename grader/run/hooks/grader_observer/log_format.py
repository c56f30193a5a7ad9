"""The format of a worker's log: what the observer writes inside the worker, and what the grader reads.

Each line of the log is one of these dataclasses as a JSON object. The first line is a `First`, then there is one
`Update` per update, and the last line is an `End`. This file needs nothing but Python: the worker has no pydantic
loaded, and the grader must not run the observer. Nothing here is checked. The grader does that in `worker_log`.
"""

from dataclasses import dataclass
from typing import NamedTuple

PROJECTIONS = 8  # random projections of each gradient: enough to tell a mean from a worker's own gradient


@dataclass
class First:
    """What holds before the first update.

    `start` is the hash of the weights, and `bytes` is their size. `size` is the number of workers that Horovod
    connects. `device` is where the first weight lies. `optimizer` is the name of the optimizer's class.
    """

    start: int
    bytes: int
    size: int
    device: str
    optimizer: str


@dataclass
class Update:
    """One update, numbered from 1 by `update`. A second line of the same number replaces the one before it.

    `lr` has one learning rate per parameter group. `images` are indices of the training images used, which came in
    `calls` batches. `weights` is the hash of the weights after the update. `local` holds the projections of the
    gradient that this worker computed itself, and `applied` those of the gradient that its optimizer applied. `loss`
    is the mean training loss of this worker's images, if a loss module computed it. `wrote` names the files of the
    output folder that were opened for writing, or renamed, since the previous update.
    """

    update: int
    lr: list[float]
    images: list[int]
    calls: int
    weights: int
    local: list[float] | None
    applied: list[float] | None
    loss: float | None
    wrote: list[str]


@dataclass
class End:
    """What a worker writes when it ends: how many updates it made, and the files written since the last one."""

    end: int
    wrote: list[str]


class Frame(NamedTuple):
    """One call of a worker's stack. A line of the stack file is a list of them as JSON, the innermost call first."""

    file: str
    line: int
    function: str
