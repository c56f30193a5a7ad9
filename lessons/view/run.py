"""What is known of a run that goes on: what each worker did, what it wrote last, and the epochs so far."""

import re
import struct
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cifar.support import lane
from cifar.support.horovodrun import read_line

SAMPLES = 44  # moments that a lane shows
SILENT_SECONDS = 5  # A worker that has changed nothing for longer is said to have stopped.
EPOCH = re.compile(r"\bepoch (\d+)/\d+ .*test accuracy ([\d.]+)%")


@dataclass
class Worker:
    """A worker of the run. `doing` is a word of `lane.DOING`, or `ended`. `past` has what it did at earlier moments."""

    rank: int
    doing: str = "starting"
    updates: int = 0
    loss: float = float("nan")
    silent: float = 0.0  # seconds since it last changed anything
    last_line: str = ""
    past: deque[str] = field(default_factory=lambda: deque(maxlen=SAMPLES))

    def look(self, folder: Path, keep: bool) -> None:
        """Read the worker's file. If `keep` is set, what it does now becomes a moment of its past."""
        try:
            state = lane.read(folder / str(self.rank))
        except (OSError, struct.error):
            return  # It has not begun to write.
        self.updates, self.loss, self.silent = state.updates, state.loss, time.time() - state.changed
        self.doing = state.doing if _lives(state.process) else "ended"
        if keep:
            self.past.append(self.doing)


def _lives(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Run:
    """A run with so many workers and epochs. Its workers write into `folder`."""

    def __init__(self, folder: Path, workers: int, epochs: int):
        self.folder, self.epochs = folder, epochs
        self.workers = [Worker(rank) for rank in range(workers)]
        self.accuracies: list[float] = []  # in per cent, one for each epoch
        self._first_ended: list[Worker] = []
        self.began, self.over = time.monotonic(), False

    def look(self, keep: bool = True) -> None:
        """Look at what the workers do now. If `keep` is set, it becomes a moment of each worker's past."""
        for worker in self.workers:
            worker.look(self.folder, keep)
        ended = [worker for worker in self.workers if worker.doing == "ended"]
        if not self._first_ended and len(ended) < len(self.workers):
            self._first_ended = ended

    def heard(self, text: str) -> None:
        """Take a line of the run's output. Only "Terminated" says nothing: the launcher ended that worker."""
        said = read_line(text.rstrip())
        rank = said.rank if said.rank is not None else 0 if len(self.workers) == 1 else None
        if rank is not None and rank < len(self.workers) and said.text not in ("", "Terminated"):
            self.workers[rank].last_line = said.text
        if found := EPOCH.search(text):
            self.accuracies = [*self.accuracies[: int(found[1]) - 1], float(found[2])]

    @property
    def lost(self) -> list[Worker]:
        """The first workers to end while others still trained. After the last epoch no worker is lost."""
        return self._first_ended if len(self.accuracies) < self.epochs else []

    @property
    def left(self) -> float | None:
        """The seconds that the run will still take, about. It is not known before the first epoch has ended."""
        done = len(self.accuracies)
        return (time.monotonic() - self.began) / done * (self.epochs - done) if done and not self.over else None
