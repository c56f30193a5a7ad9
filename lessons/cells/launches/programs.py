"""Launches programs that stand beside the notebook, by Horovod's launcher or by PyTorch's."""

import subprocess
import sys
import tempfile
import threading

from cifar.support.horovodrun import last_lines, named, read_line, redirected_lines, running, torchrun_command
from lessons.cells.launches.running import SHOWN_LINES, STALL, RunError
from lessons.cells.launches.torchrun import QUIET

SECONDS = 120  # a program that takes longer is ended
TYPED = {  # the command as one types it
    "horovodrun": "horovodrun -np {workers} python {program}",
    "torchrun": "torchrun --standalone --nproc-per-node {workers} {program}",
}


def launch(launcher: str, program: str, workers: int = 2) -> list[str]:
    """Run a program by `horovodrun` or `torchrun`, and return the lines that it prints.

    The lines begin with the rank of the worker that wrote them, and are in the order of the ranks. Raises RunError with
    the program's last lines if it fails, and if it has not ended after two minutes. Raises ValueError if there is no
    such launcher.
    """
    if launcher not in TYPED:
        raise ValueError(f"there is no launcher {launcher!r}; choose one of: {', '.join(TYPED)}")
    print("$", TYPED[launcher].format(workers=workers, program=program))
    with tempfile.TemporaryDirectory(prefix="torchrun-") as logs:
        command = ["horovodrun", "-np", str(workers), sys.executable, program]
        if launcher == "torchrun":
            command = torchrun_command(program, workers, logs=logs)
        with running(command, workers, {"OMP_NUM_THREADS": "1"} | STALL | QUIET) as process:
            lines, in_time = _until_the_end(process)
        if launcher == "torchrun":
            lines = redirected_lines(logs) or lines
    if process.returncode != 0:
        what = "failed" if in_time else f"had not ended after {SECONDS} seconds"
        last = map(named, last_lines(lines, SHOWN_LINES))
        raise RunError("\n".join([f"{program} {what} with {workers} workers:", *last]))
    return [named(line) for line in sorted(lines, key=_rank)]


def _until_the_end(process: subprocess.Popen) -> tuple[list[str], bool]:
    """Return the lines of a process, and whether it has ended in time. Otherwise it is told to end."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.terminate()

    timer = threading.Timer(SECONDS, end)
    timer.start()
    try:
        lines = [line.rstrip() for line in process.stdout]
        process.wait()
    finally:
        timer.cancel()
    return lines, not late.is_set()


def _rank(line: str) -> int:
    """The rank of the worker that wrote a line, and -1 for a line of the launcher."""
    rank = read_line(line).rank
    return -1 if rank is None else rank
