"""Tells what this worker does at this moment, in a small file that a live view reads.

A worker writes only if the environment variable FOLDER names a folder. The file is mapped into memory, so telling takes
about a microsecond, and no process waits for another.
"""

import functools
import math
import mmap
import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

FOLDER = "COURSE_LANES"
DOING = ("starting", "computing", "waiting", "testing", "ending")
LAYOUT = struct.Struct("<IIIdd")  # process id, place in DOING, updates made, loss, and the time of the last change


class State(NamedTuple):
    """What a worker did at the time `changed`, in seconds since 1970. `loss` is NaN if it is not known."""

    process: int
    doing: str
    updates: int
    loss: float
    changed: float


class Lane:
    """The file of one worker."""

    def __init__(self, path: Path):
        self.process, self.updates, self.loss = os.getpid(), 0, math.nan
        path.write_bytes(self._state("starting"))  # whole from the first moment on, because a view may read it at once
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), LAYOUT.size)

    def _state(self, doing: str) -> bytes:
        return LAYOUT.pack(self.process, DOING.index(doing), self.updates, self.loss, time.time())

    def tell(self, doing: str) -> None:
        """Say what the worker does from now on, in a word of DOING."""
        self.memory[:] = self._state(doing)

    def updated(self, loss: float) -> None:
        """Say that an update has been made, with its loss."""
        self.updates, self.loss = self.updates + 1, loss
        self.tell("computing")


@functools.cache
def _own() -> Lane | None:
    folder = os.environ.get(FOLDER)
    return Lane(Path(folder) / os.environ.get("HOROVOD_RANK", "0")) if folder else None


def tell(doing: str) -> None:
    """Say what this worker does from now on, if anybody watches."""
    if own := _own():
        own.tell(doing)


def updated(loss) -> None:
    """Say that this worker has made an update, if anybody watches. `loss` is a scalar tensor.

    On a GPU the loss is not read, because the worker would have to wait for it.
    """
    if own := _own():
        own.updated(float(loss) if loss.device.type == "cpu" else math.nan)


def read(path: Path) -> State:
    """Return what a worker does. Raises OSError if there is no such file, and struct.error if it is too short."""
    process, doing, updates, loss, changed = LAYOUT.unpack(path.read_bytes())
    return State(process, DOING[doing], updates, loss, changed)
