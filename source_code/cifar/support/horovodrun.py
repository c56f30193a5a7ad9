"""Starts programs with several workers, reads the launcher's output, and ends all processes of a run."""

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

END_SECONDS = 5  # The launcher has this time to end its workers. After that, they are killed.
TRACEBACK = "Traceback (most recent call last):"  # The launcher's own traceback starts so. A worker's has a rank first.
WORKER_LINE = re.compile(r"\[(\d{1,6})\]<(stdout|stderr)>:(.*)", re.DOTALL)


@dataclass(frozen=True)
class LogLine:
    """A line of the launcher's output. `rank` is the worker that wrote it. The launcher's own lines have rank None."""

    rank: int | None
    stream: str
    text: str


def read_line(line: str) -> LogLine:
    """Split a line of the launcher's output: `[2]<stderr>:KeyError: 'lr'` is the text `KeyError: 'lr'` of worker 2."""
    found = WORKER_LINE.fullmatch(line)
    return LogLine(int(found[1]), found[2], found[3]) if found else LogLine(None, "", line)


def named(text: str) -> str:
    """Return a line of the launcher's output with the worker's rank first. The name of the stream is left out."""
    line = read_line(text)
    return text if line.rank is None else f"[{line.rank}] {line.text}"


def last_lines(log: list[str], count: int) -> list[str]:
    """Return the last `count` lines of a launcher's output that tell why a run failed.

    These are lines of its workers. The launcher's own lines say little. So does the line "Terminated" of a worker that
    the launcher has ended. They are returned only if there are no others.
    """
    parsed = [(line, read_line(line)) for line in log]
    written = [line for line, read in parsed if read.rank is not None and read.text != "Terminated"]
    return (written or log)[-count:]


def programs_path() -> str:
    """Return the PATH with this Python's programs first, as after activating its environment."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def torchrun_command(
    program: str | Path, workers: int, *arguments: object, logs: str | Path | None = None
) -> list[str]:
    """Return the command by which PyTorch's launcher starts a program with so many workers, all on this host.

    With a folder `logs`, each worker writes into files of its own in that folder. `redirected_lines` reads them.
    Otherwise all workers write to the launcher's output, and lines of two workers can mix.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "localhost"]
    options = [] if logs is None else ["--redirects", "3", "--log-dir", str(logs)]  # 3 stands for stdout and stderr
    return [*launcher, *options, "--nproc-per-node", str(workers), str(program), *map(str, arguments)]


def redirected_lines(logs: str | Path) -> list[str]:
    """Return the lines that the workers of `torchrun` have written into the folder `logs`.

    Each line has the form of a line of `horovodrun`. Errors come last, and among them those of the worker that failed
    first. A worker that fails later often fails only because it has lost the first.
    """
    files = Path(logs).glob("*/attempt_0/*/std*.log")
    in_order = sorted(files, key=lambda file: (file.stem == "stderr", -file.stat().st_mtime_ns))
    return [
        f"[{file.parent.name}]<{file.stem}>:{line}"
        for file in in_order
        for line in file.read_text(errors="replace").splitlines()
    ]


@contextlib.contextmanager
def running(command: list[str], workers: int, environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    """Run a command, and end it and all its descendants when the context ends.

    The command has its own session, so an interrupt of the terminal reaches only this process. Its output and errors
    come as lines of text from `stdout`. Each worker gets its share of the cores. This Python's programs come first on
    the path.
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
    """End a command and all its descendants. The launcher is asked to end, and processes that remain are killed."""
    if process.poll() is not None:
        return
    launcher = psutil.Process(process.pid)
    family = [*launcher.children(recursive=True), launcher]
    process.terminate()
    remaining = psutil.wait_procs(family, timeout=END_SECONDS)[1]
    process_tree.kill(remaining, END_SECONDS)  # A large process needs a moment to end.
    process.wait()
