"""What is known of a run that goes on: what each worker did, what it wrote last, and the epochs so far."""

import re
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cifar.support import lane
from cifar.support.horovodrun import read_line

SAMPLES = 44  # A lane shows at most so many moments. They are spread over the whole run.
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
    past: list[str] = field(default_factory=list)

    def look(self, folder: Path) -> None:
        """Read the worker's file."""
        try:
            state = lane.read(folder / str(self.rank))
        except (OSError, struct.error):
            return  # It has not begun to write.
        self.updates, self.loss, self.silent = state.updates, state.loss, time.time() - state.changed
        self.doing = state.doing if _lives(state.process) else "ended"


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
        self.first_moment = self.last_moment = 0.0  # seconds after `began`
        self._looks, self._looks_a_moment = 0, 1

    def look(self) -> None:
        """Look at what the workers do now."""
        for worker in self.workers:
            worker.look(self.folder)
        ended = [worker for worker in self.workers if worker.doing == "ended"]
        if not self._first_ended and len(ended) < len(self.workers):
            self._first_ended = ended
        if any(worker.doing != "starting" for worker in self.workers):
            self._keep()

    def _keep(self) -> None:
        """Keep what the workers do as a moment of their past. A long run keeps moments that are farther apart."""
        self.last_moment = time.monotonic() - self.began
        self.first_moment = self.first_moment or self.last_moment
        self._looks += 1
        if self._looks % self._looks_a_moment:
            return
        for worker in self.workers:
            worker.past.append(worker.doing)
        if len(self.workers[0].past) > SAMPLES:
            self._looks_a_moment *= 2
            for worker in self.workers:
                del worker.past[::2]

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
