"""Starts programs with several workers, reads what the launcher passes on, and ends all that descends from it."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from cifar.support import process_tree
from cifar.support.environment import cores

END_SECONDS = 5  # for the launcher to end its workers
WORKER_LINE = re.compile(r"\[(\d{1,6})\]<(stdout|stderr)>:(.*)", re.DOTALL)


@dataclass(frozen=True)
class LogLine:
    """A line of the launcher's output. `rank` is the worker that wrote it, and None for the launcher's own lines."""

    rank: int | None
    stream: str
    text: str


def read_line(line: str) -> LogLine:
    """The line `[2]<stderr>:KeyError: 'lr'` is the text `KeyError: 'lr'` of worker 2."""
    found = WORKER_LINE.fullmatch(line)
    return LogLine(int(found[1]), found[2], found[3]) if found else LogLine(None, "", line)


def last_lines(log: list[str], count: int) -> list[str]:
    """The last lines of a launcher's output that tell why a run failed.

    They are those of its workers. The launcher's own lines say little, and count only if there are no others. So does
    the line "Terminated" of a worker that the launcher has ended.
    """
    parsed = [(line, read_line(line)) for line in log]
    written = [line for line, read in parsed if read.rank is not None and read.text != "Terminated"]
    return (written or log)[-count:]


def programs_path() -> str:
    """The PATH with this Python's programs first, as after activating its environment."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


@contextlib.contextmanager
def running(command: list[str], workers: int, environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    """A command in a session of its own, so that an interrupt reaches it through us alone, which end all of it.

    Its output and errors come as lines of text from `stdout`. Each worker gets its share of the cores; this Python's
    programs come first on the path.
    """
    variables = {"PATH": programs_path(), "OMP_NUM_THREADS": str(max(1, cores() // workers)), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", env=os.environ | variables | environment, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
        process.wait()
    finally:
        _end(process)
        process.stdout.close()


def _end(process: subprocess.Popen) -> None:
    """End a command and all that descends from it: the launcher is asked, what is left after that is killed."""
    if process.poll() is not None:
        return
    launcher = psutil.Process(process.pid)
    family = [*launcher.children(recursive=True), launcher]
    process.terminate()
    remaining = psutil.wait_procs(family, timeout=END_SECONDS)[1]
    process_tree.kill(remaining, END_SECONDS)  # a large process takes a moment to go
    process.wait()
