"""The evidence is all that is known of one run when it is judged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from grader.common import untrusted
from grader.common.contract import CHECKPOINT, MAX_TIMELINE_BYTES, METRICS, WORKERS, Profile
from grader.grading import checkpoint
from grader.grading.audit import Audit, audit
from grader.grading.checkpoint import Measured, Metrics
from grader.run.launch import Run
from grader.run.rekeyed_data import Rekeyed
from grader.run.worker_log import Worker, read_worker
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import RunPaths

Value = TypeVar("Value")


@dataclass(frozen=True)
class Missing:
    """It stands for a value that cannot be read, and counts as false. `reason` says why in one line for the learner."""

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence is what was seen from outside, the workers' logs, and measurements of the files that the run left.

    `audit` is what the questions to the workers have shown. `visible_images` is the number of test images that the run
    could read, and `secret_images` is that of the others. `gpus` is the number of GPUs that it could use. `log` is what
    the workers printed. `timeline` is the file that Horovod wrote.
    """

    profile: Profile
    run: Run
    workers: list[Worker]
    log: str
    metrics: list[Metrics] | Missing
    checkpoint: Measured | Missing
    visible_images: int
    secret_images: int = 0
    audit: Audit = field(default_factory=Audit)
    gpus: int = 0
    timeline: bytes = field(default=b"", repr=False)

    def share(self) -> float:
        """Return the number of updates that all workers made, as a share of the reference's. It may be above 1."""
        return min(len(worker.updates) for worker in self.workers) / self.profile.updates()

    def connected(self) -> bool:
        """Return whether Horovod connected all workers."""
        return all(worker.first and worker.first.size == len(self.workers) for worker in self.workers)

    def ended_well(self) -> bool:
        """Return whether every worker came to the end of its program, without an error and within the limits."""
        return not self.run.stopped and self.run.status == 0 and all(worker.end for worker in self.workers)


def gather(paths: RunPaths, profile: Profile, run: Run, data: Rekeyed, isolation: type[Isolation]) -> Evidence:
    """Read and measure what a run left at `paths`."""
    workers = [read_worker(paths.worker_log(rank)) for rank in range(WORKERS)]
    return Evidence(
        profile=profile,
        run=run,
        workers=workers,
        audit=audit(run.questions, workers, data.train, isolation),
        log=paths.log.read_text(errors="replace"),
        metrics=_or_missing(lambda: checkpoint.read_metrics(paths.output / METRICS)),
        checkpoint=_or_missing(lambda: checkpoint.measure(paths.output / CHECKPOINT, data, isolation)),
        visible_images=len(data.visible),
        secret_images=len(data.secret),
        gpus=torch.cuda.device_count(),
        timeline=_or_missing(lambda: untrusted.read(paths.timeline, MAX_TIMELINE_BYTES)) or b"",
    )


def _or_missing(read: Callable[[], Value]) -> Value | Missing:
    """Return what `read` returns, or say why a file that the run left cannot be read."""
    try:
        return read()
    except untrusted.UnreadableError as error:
        return Missing(str(error))
