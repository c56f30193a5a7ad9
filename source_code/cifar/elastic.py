"""Keeps a journal of a run whose workers come and go, so that one can tell afterwards which images were used.

Each worker writes one line per update to a file of its own, in the folder `journal` of the run's output folder.
"""

import json
import os
import socket
import time
from pathlib import Path

import horovod.torch as hvd
from torch import nn

from cifar.support.fingerprint import fingerprint


class Journal:
    """The journal of one worker. The line of an update is written before the update is committed."""

    def __init__(self, output_dir: Path):
        folder = output_dir / "journal"
        folder.mkdir(parents=True, exist_ok=True)
        # A host that starts again counts its processes from 1 again, so the process number alone may not be new.
        name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}.jsonl"
        self.file = (folder / name).open("x", buffering=1)

    def begin(self, epoch: int, done: int, net: nn.Module) -> None:
        """Note that all workers begin, or begin again, at `done` images of an epoch, with the weights of `net`.

        All workers must call this.
        """
        now = hvd.broadcast_object(time.time())  # The same number on all workers names this beginning.
        line = {"begin": now, "epoch": epoch, "done": done, "size": hvd.size(), "host": socket.gethostname()}
        line |= {"weights": fingerprint(net.parameters())}
        self.file.write(json.dumps(line) + "\n")

    def update(self, epoch: int, done: int, rate: float, images: list[int]) -> None:
        """Note an update that begins at `done` images of an epoch, and the `images` that this worker used for it."""
        line = {"ended": time.time(), "epoch": epoch, "done": done, "rate": rate, "images": images}
        self.file.write(json.dumps(line) + "\n")
