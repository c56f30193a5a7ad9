"""What holds a command that somebody else wrote: `Isolation`, which `Bubblewrap` and `Unsandboxed` make real."""

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
    """The sandbox cannot be had. The message is one line that says what would provide it."""


class Isolation(ABC):
    """Holds one command, which `start` launches, and ends it when the `with` block is left.

    `paths` are where the run's source and data lie on this machine. `inside` are the paths as the command sees them.
    `written` is where the grader can read what the command writes, while it runs. `process` is the command's process,
    and `process.stdout` gives its output and errors.
    """

    process: subprocess.Popen
    description: str  # says in a report what held the run

    def __init__(self, paths: RunPaths, threads: int):
        """`threads` is how many threads each worker may use."""
        self.paths = self.inside = self.written = paths
        self.threads = threads
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> "Isolation":
        return self

    def __exit__(self, *exception: object) -> None:
        self._cleanup.close()

    @abstractmethod
    def start(self, command: list[str]) -> None:
        """Launch the command, once. Raises IsolationError if it cannot be held."""

    @abstractmethod
    def poll(self) -> int | None:
        """The command's exit status, or None while it runs."""

    @abstractmethod
    def processes(self) -> list[psutil.Process]:
        """The processes of the command."""

    @abstractmethod
    def loopback_bytes(self) -> int | None:
        """Bytes that went over the loopback since the start, or None where GPUs exchange directly."""


def environment(paths: RunPaths, home: str, threads: int) -> dict[str, str]:
    """All the environment variables that a run gets. The observer's hooks come first on Python's path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {
        "PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "OMP_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HOOKS),
        "GRADER_OBSERVE": str(paths.observe), "HOROVOD_TIMELINE": "DYNAMIC",
        **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ},  # a slot's GPUs
    }  # fmt: skip


def gpus_exchange() -> bool:
    """Whether gradients go from GPU to GPU, past the loopback."""
    return torch.cuda.device_count() >= WORKERS and bool(hvd.nccl_built())
