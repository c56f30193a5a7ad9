"""Runs a submission with `horovodrun` on four workers, under a time limit, with the observer's hooks in place."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import horovod.torch as hvd
import psutil
import torch

from cifar.workers import cores
from grader.profile import WORKERS, Profile

ENTRY = "train.py"
MAX_SOURCE_BYTES = 64 * 1024
MAX_LOG_BYTES = 1024 * 1024
HOOKS = Path(__file__).with_name("hooks")


class SubmissionError(Exception):
    """A submission that cannot be launched; the message is one line for the learner."""


@dataclass(frozen=True)
class Folders:
    """Where one run keeps its things: its copy of the source, its data, what it writes, what was seen of it."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def observe(self) -> Path:
        return self.root / "observe"

    @property
    def log(self) -> Path:
        return self.root / "output.log"

    @property
    def report(self) -> Path:
        return self.root / "report.json"

    def clear(self) -> None:
        """Remove what an earlier run left here, and nothing else: the folder is the caller's."""
        for folder in (self.source, self.data, self.output, self.observe):
            shutil.rmtree(folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        self.report.unlink(missing_ok=True)


@dataclass(frozen=True)
class Run:
    """How a run ended. `stopped` is the grader's reason for ending it, empty if it ended by itself with `status`.

    `loopback_bytes` is None where the workers' GPUs exchange gradients directly.
    """

    status: int
    seconds: float
    stopped: str
    loopback_bytes: int | None


def copy_source(submission: Path, target: Path) -> None:
    """Copy a submission's regular files (a folder with `train.py`, or that file) after checking names and sizes."""
    if submission.is_file() and submission.name == ENTRY:
        submission = submission.parent
    if not submission.is_dir():
        raise SubmissionError(f"{submission} is not a folder with a {ENTRY} in it")
    files = [path for path in submission.rglob("*") if "__pycache__" not in path.parts]
    if any(path.is_symlink() for path in files):
        raise SubmissionError(f"{submission} holds a link; put the file itself there")
    files = [path for path in files if path.is_file()]
    if (submission / ENTRY) not in files:
        raise SubmissionError(f"{submission} has no {ENTRY}: the file that is launched must have that name")
    if (size := sum(path.stat().st_size for path in files)) > MAX_SOURCE_BYTES:
        raise SubmissionError(f"{submission} holds {size:,} bytes, more than the {MAX_SOURCE_BYTES:,} allowed")
    for path in files:
        copy = target / path.relative_to(submission)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def command(folders: Folders, profile: Profile, seed: int) -> list[str]:
    """The contract's command line."""
    return [
        "horovodrun", "-np", str(WORKERS), "python", ENTRY,
        "--data-dir", str(folders.data), "--output-dir", str(folders.output),
        "--epochs", str(profile.epochs), "--batch-size", str(profile.batch_size), "--seed", str(seed),
    ]  # fmt: skip


def run(folders: Folders, profile: Profile, seed: int, watch: Callable[[float], str]) -> Run:
    """Launch and wait. `watch(seconds)` is called twice a second; a reason it returns ends the run.

    Nothing that the run started is left when this returns, also after an interrupt.
    """
    folders.observe.mkdir()
    folders.output.mkdir()
    with tempfile.TemporaryDirectory(prefix="grader-home-") as home:
        exchanged, started = _loopback_meter(), time.monotonic()
        process = subprocess.Popen(
            command(folders, profile, seed), cwd=folders.source, env=_environment(folders, home),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        reader = threading.Thread(target=_keep_log, args=(process.stdout, folders.log), daemon=True)
        reader.start()
        stopped = ""
        try:
            while process.poll() is None and not stopped:
                time.sleep(0.5)
                stopped = watch(time.monotonic() - started)
        finally:
            seconds, loopback = time.monotonic() - started, exchanged()
            _end_everything(process, folders)
        reader.join(timeout=5)
        return Run(process.wait(), seconds, stopped, loopback)


def _environment(folders: Folders, home: str) -> dict[str, str]:
    """Nothing of the caller's environment but what a run needs; the observer's hooks come first on Python's path."""
    threads = str(max(1, cores() // WORKERS))
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {
        "PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": threads,
        "PYTHONPATH": str(HOOKS), "GRADER_OBSERVE": str(folders.observe),
    }  # fmt: skip


def _keep_log(stream, path: Path) -> None:
    """Drain the run's output for ever, so that it never blocks, but keep only its first part."""
    with path.open("wb") as file:
        while chunk := stream.read1(65536):
            file.write(chunk[: max(0, MAX_LOG_BYTES - file.tell())])
            file.flush()


def _loopback_meter() -> Callable[[], int | None]:
    """A function that tells the bytes sent over the loopback interface from now on, by all programs together."""
    if torch.cuda.is_available() and hvd.nccl_built():
        return lambda: None

    def total() -> int:
        counters = psutil.net_io_counters(pernic=True, nowrap=False)
        return sum(counters[name].bytes_sent for name in ("lo", "lo0") if name in counters)

    before = total()
    return lambda: total() - before


def _end_everything(process: subprocess.Popen, folders: Folders) -> None:
    """Kill what the run started: its descendants, and whoever carries its environment (helpers that left the tree)."""
    mark = str(folders.observe)
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    for other in psutil.process_iter():
        try:
            if other.environ().get("GRADER_OBSERVE") == mark:
                family.append(other)
        except psutil.Error:
            continue
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    if process.poll() is None:
        process.kill()
    process.wait()
