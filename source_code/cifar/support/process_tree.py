"""Starts programs with several workers, and ends all that descends from them, however this ends."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from cifar.support.environment import cores

END_SECONDS = 5  # for the launcher to end its workers


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
    left = psutil.wait_procs(family, timeout=END_SECONDS)[1]
    for one in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(left, timeout=END_SECONDS)  # a large process takes a moment to go
    process.wait()
