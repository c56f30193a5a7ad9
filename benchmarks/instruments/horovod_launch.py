"""Runs a function on real Horovod workers and returns the result of each.

`on_workers("bandwidth:all_three", 4, sizes=[1024])` calls `all_three(sizes=[1024])` of the module `bandwidth` on four
workers. Each worker has called hvd.init() before, and has set its share of the threads.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path

from cifar.support.environment import cores
from cifar.support.horovodrun import last_lines, running
from cluster import Cluster
from cluster.network import CARD

SECONDS = 1800  # an experiment that takes longer is taken to hang
SHOWN_LINES = 25  # how many of the last lines of failed workers are shown
# Horovod's own cycle times in milliseconds. They replace those that the course chooses.
AS_IT_IS = {"HOROVOD_CYCLE_TIME": "1", "HOROVOD_IDLE_CYCLE_TIME": "0"}


class WorkersError(RuntimeError):
    """Raised if workers fail. The message ends with the last lines that they wrote."""


def on_workers(
    task: str, size: int, environment: dict[str, str] | None = None, hosts: Cluster | None = None, **arguments
) -> list:
    """Call `task`, given as `module:function`, on `size` workers. Returns their results in the order of the ranks.

    Arguments and results travel as JSON. `environment` holds further environment variables. With `hosts`, each of them
    runs the same number of workers. Raises WorkersError if a worker fails, and subprocess.TimeoutExpired after SECONDS
    seconds.
    """
    with tempfile.TemporaryDirectory(prefix="workers-") as scratch:
        folder = Path(scratch)
        (folder / "arguments.json").write_text(json.dumps(arguments))
        _launch(task, size, folder, environment or {}, hosts)
        return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(size)]


def _launch(task: str, size: int, folder: Path, environment: dict[str, str], hosts: Cluster | None) -> None:
    worker = [sys.executable, "-m", "benchmarks.instruments.horovod_launch", task, str(folder)]
    command = ["horovodrun", "-np", str(size), *worker]
    if hosts:
        listed = ",".join(f"{name}:{size // len(hosts.hosts)}" for name in hosts.hosts)
        command[3:3] = ["-H", listed, "--network-interfaces", CARD]
        command = hosts.hosts["alpha"].command(*command)
    with running(command, size, environment) as launcher:
        log, _ = launcher.communicate(timeout=SECONDS)
    if launcher.returncode != 0:
        reason = "\n".join(last_lines(log.splitlines(), SHOWN_LINES))
        raise WorkersError(f"{task} on {size} workers failed:\n{reason}")


def _worker(task: str, folder: Path) -> None:
    import horovod.torch as hvd
    import torch

    hvd.init()
    torch.set_num_threads(max(1, cores() // hvd.size()))  # All hosts are on this machine, and share its cores.
    module, _, function = task.partition(":")
    arguments = json.loads((folder / "arguments.json").read_text())
    value = getattr(importlib.import_module(module), function)(**arguments)
    (folder / f"rank{hvd.rank()}.json").write_text(json.dumps(value))
    hvd.barrier()  # all wait here, because the launcher ends all workers when the first one leaves


if __name__ == "__main__":
    _worker(sys.argv[1], Path(sys.argv[2]))
