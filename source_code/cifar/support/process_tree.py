"""A process and all that descends from it: who they are, and their end."""

import contextlib
from collections.abc import Iterable

import psutil


def descendants(pid: int) -> list[psutil.Process]:
    """All processes that descend from a process. There are none if it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill(processes: Iterable[psutil.Process], seconds: float) -> None:
    """Kill these processes and wait for their end, for so many seconds at the most. Some may have ended."""
    processes = list(processes)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=seconds)
