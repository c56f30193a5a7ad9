"""All that is known of one run when it is judged."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from grader.common import untrusted
from grader.common.contract import CHECKPOINT, MAX_TIMELINE_BYTES, METRICS, WORKERS, Profile
from grader.grading import checkpoint
from grader.grading.checkpoint import Measured, Metrics
from grader.run.launch import Run
from grader.run.rekeyed_data import Rekeyed
from grader.run.worker_log import Worker, read_worker
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import RunPaths

Value = TypeVar("Value")


@dataclass(frozen=True)
class Missing:
    """Stands for a value that could not be had, and counts as false. `reason` says why, in a line for the learner."""

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The run from outside, the workers' own logs, and what was measured of the files that the run left.

    `visible_images`: how many test images the run could look at. `gpus`: how many the run could use. `log`: what the
    workers printed. `timeline`: Horovod's, as it was written.
    """

    profile: Profile
    run: Run
    workers: list[Worker]
    log: str
    metrics: list[Metrics] | Missing
    checkpoint: Measured | Missing
    visible_images: int
    gpus: int = 0
    timeline: bytes = field(default=b"", repr=False)

    def share(self) -> float:
        """How much of the training was seen, in updates of the reference: 0 to 1, more if the run made more."""
        return min(len(worker.updates) for worker in self.workers) / self.profile.updates()

    def connected(self) -> bool:
        """Whether Horovod connected all workers."""
        return all(worker.first and worker.first.size == len(self.workers) for worker in self.workers)


def gather(paths: RunPaths, profile: Profile, run: Run, data: Rekeyed, isolation: type[Isolation]) -> Evidence:
    """Read and measure what a run left at `paths`."""
    return Evidence(
        profile=profile,
        run=run,
        workers=[read_worker(paths.worker_log(rank)) for rank in range(WORKERS)],
        log=paths.log.read_text(errors="replace"),
        metrics=_or_missing(lambda: checkpoint.read_metrics(paths.output / METRICS)),
        checkpoint=_or_missing(lambda: checkpoint.measure(paths.output / CHECKPOINT, data, isolation)),
        visible_images=len(data.visible),
        gpus=torch.cuda.device_count(),
        timeline=_or_missing(lambda: untrusted.read(paths.timeline, MAX_TIMELINE_BYTES)) or b"",
    )


def _or_missing(read: Callable[[], Value]) -> Value | Missing:
    """What `read` returns, or why a file that the run left cannot be read."""
    try:
        return read()
    except untrusted.UnreadableError as error:
        return Missing(str(error))
