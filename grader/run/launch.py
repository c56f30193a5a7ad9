"""Runs a submission with `horovodrun` on four workers. The caller chooses the isolation. A watchdog may stop it."""

import contextlib
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from cifar.support.environment import cores
from grader.common import contract, untrusted
from grader.common.contract import CHECKPOINT, ENTRY, METRICS, WORKERS, Profile
from grader.run import challenger
from grader.run.challenger import Challenger, Question
from grader.run.process_monitor import OutsideView, ProcessMonitor
from grader.run.run_progress import RunProgress
from grader.run.watchdog import Watchdog, reference_seconds
from grader.run.worker_log import updates_so_far
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import RunPaths

SAMPLE_SECONDS = 0.5  # the time between two looks at a run: looking costs time that the run needs


@dataclass(frozen=True)
class Run:
    """How a run ended.

    It ended by itself with the exit status `status`, or the watchdog stopped it for the reason `stopped`. `outside` is
    what the grader observed without the program's help. `isolation` says in words what isolated the run. `questions`
    are those that the grader asked the workers, with their answers.
    """

    status: int | None
    seconds: float
    stopped: str | None
    outside: OutsideView
    isolation: str
    questions: list[Question] = field(default_factory=list, repr=False)


def command(paths: RunPaths, profile: Profile, seed: int) -> list[str]:
    """The contract's command line."""
    return [
        "horovodrun", "-np", str(WORKERS), "python", ENTRY,
        "--data-dir", str(paths.data), "--output-dir", str(paths.output),
        "--epochs", str(profile.epochs), "--batch-size", str(profile.batch_size), "--seed", str(seed),
    ]  # fmt: skip


def run(paths: RunPaths, profile: Profile, seed: int, isolation: type[Isolation], console: Console) -> Run:
    """Launch the submission, show its progress, wait for its end, and bring what it wrote into `paths`.

    All processes that the run started have ended when this returns, also after an interrupt. Raises
    isolation.IsolationError if this machine cannot provide the isolation.
    """
    for folder in (paths.observe, paths.output, paths.challenges):
        folder.mkdir()
    watchdog = Watchdog(reference_seconds(profile))
    threads = max(1, cores() // WORKERS)
    with RunProgress(profile, console) as progress, isolation(paths, threads) as isolated:
        started, stopped = time.monotonic(), None
        challenger.name_network(paths.challenges)
        isolated.start(command(isolated.inside, profile, seed))
        reader = threading.Thread(target=_keep_output, args=(isolated.process.stdout, paths.log), daemon=True)
        reader.start()
        monitor = ProcessMonitor(
            isolated.written.output, isolated.processes, isolated.loopback_bytes, lambda: min(_updates(isolated))
        )
        with contextlib.closing(Challenger(paths.challenges, isolated.written, profile.updates())) as asking:
            while (status := isolated.poll()) is None and not stopped:
                time.sleep(SAMPLE_SECONDS)
                seconds = time.monotonic() - started
                updates = _updates(isolated)
                monitor.sample(min(updates))
                progress.show(min(updates), seconds)
                stopped = watchdog.check(seconds, updates, monitor.view, isolated.written)
        seconds = time.monotonic() - started
        outside = monitor.close()
        if isolated.written != paths:
            _bring_out(isolated.written, paths)
    reader.join(timeout=5)
    if status is not None:
        stopped = None  # it has ended by itself while the watchdog decided
    return Run(status, seconds, stopped, outside, isolated.description, asking.questions)


def _updates(isolated: Isolation) -> list[int]:
    """Return the number of updates that each worker has made so far, by rank."""
    return [updates_so_far(isolated.written.worker_log(rank)) for rank in range(WORKERS)]


def _bring_out(written: RunPaths, paths: RunPaths) -> None:
    """Copy the files that the grader reads, and no others, out of a sandbox."""
    limits = {
        written.output / CHECKPOINT: contract.MAX_CHECKPOINT_BYTES,
        written.output / METRICS: contract.MAX_METRICS_BYTES,
        written.timeline: contract.MAX_TIMELINE_BYTES,
        **{written.worker_log(rank): contract.MAX_WORKER_LOG_BYTES for rank in range(WORKERS)},
    }
    for path, max_bytes in limits.items():
        with contextlib.suppress(untrusted.UnreadableError):
            copy = paths.root / path.relative_to(written.root)
            # A file that is too long is copied with one byte more than is allowed, so that its reader refuses it too.
            copy.write_bytes(untrusted.read(path, max_bytes + 1, tail=True))


def _keep_output(stream, path: Path) -> None:
    """Read the run's output to its end, so that the run never blocks, and keep only its first part."""
    with path.open("wb") as file:
        while chunk := stream.read1(65536):
            file.write(chunk[: max(0, contract.MAX_OUTPUT_BYTES - file.tell())])
            file.flush()
