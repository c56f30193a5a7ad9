"""`Isolation` is what holds a command that somebody else wrote. `Bubblewrap` and `Unsandboxed` implement it."""

import contextlib
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import horovod.torch as hvd
import psutil
import torch

from grader.common.contract import WORKERS
from grader.common.errors import GraderError
from grader.sandbox.run_paths import HOOKS, RunPaths


class IsolationError(GraderError):
    """The sandbox cannot be set up. The message is one line that says what would provide it."""


class Isolation(ABC):
    """Holds one command. `start` launches the command, and it ends when the `with` block is left.

    `paths` says where the run's source and data lie on this machine. `inside` has the paths as the command sees them.
    `written` has the paths where the grader can read what the command writes, while it runs. `process` is the process
    that was launched, and `process.stdout` gives the command's output and errors.
    """

    process: subprocess.Popen
    description: str  # this text says in a report what held the run

    def __init__(self, paths: RunPaths, threads: int):
        """`threads` is the number of threads that each worker may use."""
        self.paths = self.inside = self.written = paths
        self.threads = threads
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> "Isolation":
        return self

    def __exit__(self, *exception: object) -> None:
        self._cleanup.close()

    @abstractmethod
    def start(self, command: list[str]) -> None:
        """Launch the command. It can be called only once. Raises IsolationError if the command cannot be held."""

    @abstractmethod
    def poll(self) -> int | None:
        """Return the command's exit status, or None while it runs."""

    @abstractmethod
    def processes(self) -> list[psutil.Process]:
        """Return the processes of the command."""

    @abstractmethod
    def loopback_bytes(self) -> int | None:
        """Return how many bytes the loopback has carried since the start, or None where GPUs exchange directly."""


def environment(paths: RunPaths, home: str, threads: int) -> dict[str, str]:
    """Return all environment variables that a run gets. The observer's hooks come first on Python's path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    # CUDA_VISIBLE_DEVICES names the GPUs of the slot in which the run takes place.
    return {
        "PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "OMP_NUM_THREADS": str(threads),
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "600",  # not 30: a worker may start slowly, and the watchdog stops what hangs
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin take six times as long where other processes use the cores
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",  # torch.compile would write more than a run may
        "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HOOKS),
        "GRADER_OBSERVE": str(paths.observe), "HOROVOD_TIMELINE": "DYNAMIC",
        **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ},
    }  # fmt: skip


def gpus_exchange() -> bool:
    """Return whether gradients go directly from GPU to GPU, and not over the loopback."""
    return torch.cuda.device_count() >= WORKERS and bool(hvd.nccl_built())
