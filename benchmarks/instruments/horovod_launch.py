"""Runs a function on real Horovod workers and brings back what each returned.

`on_workers("bandwidth:all_three", 4, sizes=[1024])` calls `all_three(sizes=[1024])` of the module `bandwidth` on four
workers, after hvd.init() and with the worker's share of the threads set.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path

from cifar.support.environment import cores
from cifar.support.horovodrun import read_line, running

SECONDS = 1800  # an experiment that takes longer hangs
AS_IT_IS = {"HOROVOD_CYCLE_TIME": "1", "HOROVOD_IDLE_CYCLE_TIME": "0"}  # Horovod's own, in place of the course's


class WorkersError(RuntimeError):
    """Workers that failed; the message ends with the last lines that they wrote."""


def on_workers(task: str, size: int, environment: dict[str, str] | None = None, **arguments) -> list:
    """What `module:function` returned (as JSON) on each of `size` workers, by rank. Raises WorkersError."""
    with tempfile.TemporaryDirectory(prefix="workers-") as scratch:
        folder = Path(scratch)
        (folder / "arguments.json").write_text(json.dumps(arguments))
        _launch(task, size, folder, environment or {})
        return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(size)]


def _launch(task: str, size: int, folder: Path, environment: dict[str, str]) -> None:
    command = [
        "horovodrun",
        "-np",
        str(size),
        sys.executable,
        "-m",
        "benchmarks.instruments.horovod_launch",
        task,
        str(folder),
    ]
    with running(command, size, environment) as launcher:
        log, _ = launcher.communicate(timeout=SECONDS)
    if launcher.returncode != 0:
        raise WorkersError(f"{task} on {size} workers failed:\n{_last(log)}")


def _last(log: str) -> str:
    """The last lines that the workers wrote; the launcher's own, which say little, only if there are no others."""
    lines = log.splitlines()
    written = [line for line in lines if read_line(line).rank is not None]
    return "\n".join((written or lines)[-25:])


def _worker(task: str, folder: Path) -> None:
    import horovod.torch as hvd
    import torch

    hvd.init()
    torch.set_num_threads(max(1, cores() // hvd.local_size()))
    module, _, function = task.partition(":")
    arguments = json.loads((folder / "arguments.json").read_text())
    value = getattr(importlib.import_module(module), function)(**arguments)
    (folder / f"rank{hvd.rank()}.json").write_text(json.dumps(value))
    hvd.barrier()  # the launcher ends all workers when the first one leaves


if __name__ == "__main__":
    _worker(sys.argv[1], Path(sys.argv[2]))
