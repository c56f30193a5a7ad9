"""Observes a run from outside, whatever its program says: its processes, loopback bytes, and the files it writes."""

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
# The kernel merges equal events in a row. Events of opening and modifying a file keep two writes of it apart.
LOOK_FOR = WRITTEN | inotify_simple.flags.OPEN | inotify_simple.flags.MODIFY
PROCESS_TABLE_EVERY = 4  # The processes are looked at in every fourth sample: this costs time that the run needs.
MAX_LOOK_SECONDS = 1  # A look at the listed processes ends after this time, however many there are.
READ_MILLISECONDS = 200  # the time to wait for events before looking whether the run has ended
JOIN_SECONDS = 5  # the time to wait for the thread's end, which comes after at most one read


@dataclass(kw_only=True)
class OutsideView:
    """What was observed of a run from outside.

    `cpu_seconds` is the CPU time of the workers' processes, by rank. `cpu_moving` is the same at the time when the
    number of updates last rose: workers that wait for a stopped one use CPU time too. `running` are the ranks whose
    processes existed at the last look. `loopback` has pairs of updates made and bytes sent, in order of time. It is
    empty where the workers' GPUs exchange directly. `writes` is, for each result file, the largest number of times
    that it was written between two updates. It is None where that could not be watched.
    """

    cpu_seconds: dict[int, float] = field(default_factory=dict)
    cpu_moving: dict[int, float] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    loopback: list[tuple[int, int]] = field(default_factory=list)
    writes: dict[str, int] | None = None


class ProcessMonitor:
    """Looks at a run whenever `sample` is called.

    `output` is the run's output folder. `processes` lists the run's processes. `loopback_bytes` tells how many bytes
    its loopback has carried, or None where the workers' GPUs exchange directly. `updates` tells how many updates the
    worker that has made fewest has made by now. It is asked at each write of a result, because a GPU can train several
    epochs between two samples.
    """

    def __init__(
        self, output: Path, processes: Callable[[], Iterable[psutil.Process]],
        loopback_bytes: Callable[[], int | None], updates: Callable[[], int],
    ):  # fmt: skip
        self.processes, self.loopback_bytes = processes, loopback_bytes
        self.view = OutsideView()
        self.samples, self.last_updates = 0, 0
        self.write_counter = WriteCounter(output, updates)

    def sample(self, updates: int) -> None:
        """Look at the run. `updates` is the number of updates of the worker that has made fewest."""
        if self.samples % PROCESS_TABLE_EVERY == 0:
            self._look_at_processes()
            if updates == 0 or updates > self.last_updates:
                self.last_updates, self.view.cpu_moving = updates, dict(self.view.cpu_seconds)
        self.samples += 1
        if (sent := self.loopback_bytes()) is not None:
            self.view.loopback.append((updates, sent))

    def _look_at_processes(self) -> None:
        listed = sorted(self.processes(), key=lambda process: process.pid)  # the workers are among the oldest
        until, seconds_by_rank = time.monotonic() + MAX_LOOK_SECONDS, {}
        for process in listed:
            if time.monotonic() > until:
                break
            with contextlib.suppress(psutil.Error, ValueError, KeyError):
                rank = int(process.environ()["HOROVOD_RANK"])
                used = process.cpu_times()
                seconds_by_rank[rank] = max(seconds_by_rank.get(rank, 0.0), used.user + used.system)
        else:  # Only a complete look can tell which workers have ended.
            self.view.running = set(seconds_by_rank)
        for rank, seconds in seconds_by_rank.items():
            self.view.cpu_seconds[rank] = max(self.view.cpu_seconds.get(rank, 0.0), seconds)

    def close(self) -> OutsideView:
        """Stop observing, and return what was observed."""
        self.view.writes = self.write_counter.close()
        return self.view


class WriteCounter:
    """Counts how often each result file in `folder` is written between two updates.

    `updates` returns the number of updates at the moment.
    """

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
                last = self.ended  # Events of before the end are still read after it.
                for event in watch.read(timeout=0 if last else READ_MILLISECONDS):
                    if event.mask & WRITTEN and event.name in WATCHED:
                        self.counts[event.name, self.updates()] += 1

    def close(self) -> dict[str, int] | None:
        """Stop counting. Returns what `OutsideView.writes` describes."""
        if self.thread is None:
            return None
        self.ended = True
        self.thread.join(timeout=JOIN_SECONDS)
        return {
            name: max((count for (file, _), count in self.counts.items() if file == name), default=0)
            for name in WATCHED
        }
