"""These functions find and kill the descendants of a process."""

import contextlib
from collections.abc import Iterable

import psutil


def descendants(pid: int) -> list[psutil.Process]:
    """Return all processes that descend from a process. There are none if it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill(processes: Iterable[psutil.Process], seconds: float) -> None:
    """Kill these processes, and wait for at most `seconds` until they have ended. Some may have ended before."""
    processes = list(processes)
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=seconds)
