"""Runs a submission with `horovodrun` on four workers, isolated as the caller says, under a time limit."""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cifar.support.environment import cores
from grader.common import untrusted
from grader.common.contract import WORKERS, Profile
from grader.grading.checkpoint import MAX_CHECKPOINT_BYTES, MAX_METRICS_BYTES
from grader.run import worker_log
from grader.run.process_monitor import Outside, Seen
from grader.run.worker_log import updates_so_far
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import Folders
from grader.submission.intake import ENTRY

MAX_LOG_BYTES = 1024 * 1024
MAX_TIMELINE_BYTES = 4 * 2**20  # of three updates an honest run has 0.1 MiB

Watch = Callable[[float, list[int], Seen, Folders], str]


@dataclass(frozen=True)
class Run:
    """How a run ended. `stopped` is the grader's reason for ending it, empty if it ended by itself with `status`.

    `outside`: what was seen without the program's help. `isolation` says what held the run.
    """

    status: int | None
    seconds: float
    stopped: str
    outside: Seen
    isolation: str


def command(folders: Folders, profile: Profile, seed: int) -> list[str]:
    """The contract's command line."""
    return [
        "horovodrun", "-np", str(WORKERS), "python", ENTRY,
        "--data-dir", str(folders.data), "--output-dir", str(folders.output),
        "--epochs", str(profile.epochs), "--batch-size", str(profile.batch_size), "--seed", str(seed),
    ]  # fmt: skip


def run(folders: Folders, profile: Profile, seed: int, isolate: Isolation, watch: Watch) -> Run:
    """Launch, wait, and bring what the run wrote into `folders`.

    `watch(seconds, updates by worker, seen from outside, folders)` is called twice a second; a reason it returns ends
    the run. Nothing that the run started is left when this returns, also after an interrupt. Raises
    isolation.IsolationError if the isolation cannot be had.
    """
    folders.observe.mkdir()
    folders.output.mkdir()
    threads = max(1, cores() // WORKERS)
    started, stopped = time.monotonic(), ""
    with isolate(lambda inside: command(inside, profile, seed), folders, threads) as running:
        reader = threading.Thread(target=_keep_log, args=(running.process.stdout, folders.log), daemon=True)
        reader.start()
        outside = Outside(running.folders.output, running.processes, running.loopback_bytes)
        while (status := running.status()) is None and not stopped:
            time.sleep(0.5)
            updates = [updates_so_far(running.folders.lines(rank)) for rank in range(WORKERS)]
            outside.look(min(updates))
            stopped = watch(time.monotonic() - started, updates, outside.seen, running.folders)
        seconds = time.monotonic() - started
        seen = outside.close()
        if running.folders != folders:
            _collect(running.folders, folders)
    reader.join(timeout=5)
    return Run(status, seconds, stopped, seen, running.isolation)


def _collect(view: Folders, folders: Folders) -> None:
    """Copy the files that the grader reads, and no others, out of a sandbox."""
    wanted = {view.output / "model.pt": MAX_CHECKPOINT_BYTES, view.output / "metrics.jsonl": MAX_METRICS_BYTES}
    wanted |= {view.lines(rank): worker_log.MAX_BYTES for rank in range(WORKERS)}
    wanted[view.timeline] = MAX_TIMELINE_BYTES
    for path, most in wanted.items():
        with contextlib.suppress(untrusted.UnreadableError):  # one byte too many stays one byte too many
            (folders.root / path.relative_to(view.root)).write_bytes(untrusted.read(path, most + 1, tail=True))


def _keep_log(stream, path: Path) -> None:
    """Drain the run's output for ever, so that it never blocks, but keep only its first part."""
    with path.open("wb") as file:
        while chunk := stream.read1(65536):
            file.write(chunk[: max(0, MAX_LOG_BYTES - file.tell())])
            file.flush()
