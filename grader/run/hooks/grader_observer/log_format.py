"""The format of a worker's log and of its answers: what the observer writes inside the worker, and the grader reads.

Each line of the log is one of these dataclasses as a JSON object. The first line is a `First`, then there is one
`Update` per update, and the last line is an `End`. This file needs nothing but Python: the worker has no pydantic
loaded, and the grader must not run the observer. Nothing here is checked. The grader does that in `worker_log`.
"""

from dataclasses import dataclass
from typing import NamedTuple

KEPT_UPDATES = 32  # a worker keeps the weights of so many updates, so that the grader can ask for them
FROZEN = -1  # in place of the number of a parameter that needs no gradient
PROJECTIONS = 128  # random projections of each gradient; 32 cannot tell images apart where a network hardly trains


@dataclass
class First:
    """What holds before the first update.

    `start` is the hash of the weights, and `bytes` is their size. `size` is the number of workers that Horovod
    connects. `device` is where the first weight lies. `optimizer` is the name of the optimizer's class. `commitment`
    is explained at `Update`.
    """

    start: int
    bytes: int
    size: int
    device: str
    optimizer: str
    commitment: str | None


@dataclass
class Update:
    """One update, numbered from 1 by `update`. A second line of the same number replaces the one before it.

    `lr` has one learning rate per parameter group. That of the group with most of the network's weights comes first.
    `images` are indices of the training images used, which came in `calls` batches. `test_images` is the number of test
    images that were fetched as if to train on them: while PyTorch recorded gradients, or in place of training images.
    `weights` is the hash of the weights after the update. `local` holds the projections of the gradient that this
    worker computed itself, and `applied` those of the gradient that its optimizer applied. `loss` is the mean training
    loss of this worker's images, if a loss module computed it. `wrote` has the paths of the files below the output
    folder that were opened for writing, or renamed, since the previous update.

    `commitment` is the SHA-256 of the network's weights after the update, and `network` has the numbers of the
    network's parameters among all parameters that are followed. The grader asks for these weights later. `step` is how
    far the optimizer has moved these weights, as the length of a vector. `moved` is how far something else had moved
    them since the previous update. All four are None if no network of the assignment's shape was trained.
    """

    update: int
    lr: list[float]
    images: list[int]
    calls: int
    test_images: int
    weights: int
    local: list[float] | None
    applied: list[float] | None
    loss: float | None
    wrote: list[str]
    commitment: str | None
    network: list[int] | None
    step: float | None = None
    moved: float | None = None


@dataclass
class End:
    """What a worker writes when it ends: how many updates it made, and the files written since the last one."""

    end: int
    wrote: list[str]


# The grader asks a worker for the weights before and after an update. It writes these files into a folder that the run
# cannot write to. The answer lies beside the worker's log, and holds both weights as float32 numbers.
NETWORK_FILE = "network.json"  # the shapes of the parameters of the assignment's network, in their order
DONE_FILE = "done"  # there are no more questions


def question_file(rank: int, number: int) -> str:
    """The name of a worker's question. The file holds the number of an update."""
    return f"question{rank}-{number}"


def answer_file(rank: int, number: int) -> str:
    """The name of the answer to that question. The file is empty if the weights are not kept any more."""
    return f"answer{rank}-{number}"


class Frame(NamedTuple):
    """One call of a worker's stack. A line of the stack file is a list of them as JSON, the innermost call first."""

    file: str
    line: int
    function: str
