"""Runs a function on real processes that torch.distributed (Gloo) connects, without Horovod.

It serves exchanges that are written by hand. `on_peers("benchmarks.speed.loop:peer", 4, updates=3)` calls
`peer(updates=3)` of that module on four processes of this machine. The processes are connected, and each has its share
of the threads. One fresh process imports the function's module, reads CIFAR-10 and then forks the others. Eight
processes therefore start about as fast as one. A process with threads must not fork. The fresh process has none yet,
but a notebook has some.
"""

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import wait
from pathlib import Path

import psutil
import torch
import torch.distributed as dist
import torch.distributed.nn  # imported before the group exists: its functions' default values would hold the group

from benchmarks.experiment import dataset
from cifar.data import Split
from cifar.support.environment import cores

SECONDS = 1200  # an experiment that takes longer is taken to hang
MESSAGE_SECONDS = 120  # a message that takes longer is taken to hang
DEVICE = {"device": "cpu"}  # Gloo sends from CPU to CPU, and a process that uses CUDA cannot be forked


def data(images: int) -> Split:
    """The first `images` training images. The processes that `on_peers` starts have them in memory already."""
    return dataset.data(DEVICE | {"images": images})[0]


class PeersError(RuntimeError):
    """Raised if processes fail. The message ends with the last lines that they wrote."""


def on_peers(task: str, size: int, **arguments) -> list:
    """Call `task`, given as `module:function`, on `size` processes. Returns their results in the order of the ranks.

    Arguments and results travel as JSON. Raises PeersError if a process fails, and subprocess.TimeoutExpired after
    SECONDS seconds.
    """
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        folder = Path(scratch)
        (folder / "arguments.json").write_text(json.dumps(arguments))
        _launch(
            [sys.executable, "-m", "benchmarks.instruments.gloo_processes", task, str(size), scratch], folder / "log"
        )
        return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(size)]


def _launch(command: list[str], log: Path) -> None:
    loopback = next(name for name in psutil.net_if_addrs() if name.startswith("lo"))
    variables = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback}
    with log.open("wb") as out:
        first = subprocess.Popen(command, stdout=out, stderr=out, env=variables, start_new_session=True)
        try:
            status = first.wait(SECONDS)
        except BaseException:  # after Ctrl-C or the time limit no process may remain
            os.killpg(first.pid, signal.SIGTERM)
            first.wait()
            raise
    if status != 0:
        lines = log.read_text(errors="replace").splitlines()
        raise PeersError(f"{' '.join(command[2:5])} failed:\n" + "\n".join(lines[-25:]))


def _fork(task: str, size: int, folder: Path) -> int:
    """Start the processes, and end all of them when one fails. Returns the exit status."""
    module, _, name = task.partition(":")
    function = getattr(importlib.import_module(module), name)
    dataset.data(DEVICE)
    fork = multiprocessing.get_context("fork")
    peers = [fork.Process(target=_peer, args=(function, rank, size, folder)) for rank in range(size)]
    for peer in peers:
        peer.start()
    left = {peer.sentinel: peer for peer in peers}
    while left:
        for ended in [left.pop(sentinel) for sentinel in wait(list(left))]:
            ended.join()
            for other in left.values() if ended.exitcode else ():
                other.terminate()
    return int(any(peer.exitcode for peer in peers))


def _peer(function: Callable, rank: int, size: int, folder: Path) -> None:
    torch.set_num_threads(max(1, cores() // size))
    store, limit = f"file://{folder}/store", timedelta(seconds=MESSAGE_SECONDS)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size, timeout=limit)
    value = function(**json.loads((folder / "arguments.json").read_text()))
    (folder / f"rank{rank}.json").write_text(json.dumps(value))
    dist.barrier()  # no process leaves while others still exchange messages
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(_fork(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
