"""What can be seen of a run from outside, whatever its program says: processes, loopback bytes, files written."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import inotify_simple
import psutil

from grader.common.contract import CHECKPOINT, METRICS

WATCHED = (CHECKPOINT, METRICS)
WRITTEN = inotify_simple.flags.CLOSE_WRITE | inotify_simple.flags.MOVED_TO
LOOK_FOR = WRITTEN | inotify_simple.flags.OPEN | inotify_simple.flags.MODIFY  # equal events in a row count as one
PROCESS_TABLE_EVERY = 4  # samples: looking at all processes costs time that the run needs
LOOK_SECONDS = 1  # and no more than that, however many there are


@dataclass(kw_only=True)
class OutsideView:
    """What was seen of a run from outside.

    `cpu_seconds`: by rank, of the workers' processes. `cpu_moving`: the same when the updates last rose in number, for
    workers that wait for a stopped one burn time. `running`: ranks whose processes were there at the last look.
    `loopback`: (updates made, bytes sent) in order of time, empty where the workers' GPUs exchange directly. `writes`:
    how often each result file was written between two updates, at the most; None where that could not be watched.
    """

    cpu_seconds: dict[int, float] = field(default_factory=dict)
    cpu_moving: dict[int, float] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    loopback: list[tuple[int, int]] = field(default_factory=list)
    writes: dict[str, int] | None = None


class ProcessMonitor:
    """Looks at a run from time to time. `processes` lists its processes, `loopback_bytes` what its loopback carried."""

    def __init__(
        self, output: Path, processes: Callable[[], Iterable[psutil.Process]], loopback_bytes: Callable[[], int | None]
    ):
        self.processes, self.loopback_bytes = processes, loopback_bytes
        self.view, self.samples, self.updates, self.moved = OutsideView(), 0, 0, 0
        self.writes = Writes(output, lambda: self.updates)

    def sample(self, updates: int) -> None:
        """Note how things stand after so many updates (of the worker that has made fewest)."""
        self.updates = updates
        if self.samples % PROCESS_TABLE_EVERY == 0:
            self._look_at_processes()
            if updates == 0 or updates > self.moved:
                self.moved, self.view.cpu_moving = updates, dict(self.view.cpu_seconds)
        self.samples += 1
        if (sent := self.loopback_bytes()) is not None:
            self.view.loopback.append((updates, sent))

    def _look_at_processes(self) -> None:
        until, seen = time.monotonic() + LOOK_SECONDS, {}
        for process in sorted(self.processes(), key=lambda process: process.pid):  # the workers are among the oldest
            if time.monotonic() > until:
                break
            with contextlib.suppress(psutil.Error, ValueError, KeyError):
                rank = int(process.environ()["HOROVOD_RANK"])
                used = process.cpu_times()
                seen[rank] = max(seen.get(rank, 0.0), used.user + used.system)
        else:
            self.view.running = set(seen)  # a look that took too long tells of none that it is gone
        for rank, used in seen.items():
            self.view.cpu_seconds[rank] = max(self.view.cpu_seconds.get(rank, 0.0), used)

    def close(self) -> OutsideView:
        """Stop watching. Returns what was seen."""
        self.view.writes = self.writes.close()
        return self.view


class Writes:
    """Counts, while a run lasts, how often each result file is written between two updates."""

    def __init__(self, folder: Path, updates: Callable[[], int]):
        self.counts: Counter[tuple[str, int]] = Counter()
        self.updates, self.ended, self.thread = updates, False, None
        with contextlib.suppress(OSError):  # a system without inotify
            watch = inotify_simple.INotify()
            watch.add_watch(folder, LOOK_FOR)
            self.thread = threading.Thread(target=self._count, args=(watch,), daemon=True)
            self.thread.start()

    def _count(self, watch: inotify_simple.INotify) -> None:
        with watch:
            last = False
            while not last:
                last = self.ended  # what was written before the end is read after it
                for event in watch.read(timeout=0 if last else 200):
                    if event.mask & WRITTEN and event.name in WATCHED:
                        self.counts[event.name, self.updates()] += 1

    def close(self) -> dict[str, int] | None:
        """The most writes of each file without an update in between; None if that could not be watched."""
        if self.thread is None:
            return None
        self.ended = True
        self.thread.join(timeout=5)
        return {name: max((n for (what, _), n in self.counts.items() if what == name), default=0) for name in WATCHED}
