"""All that is known of one run when it is judged."""

from dataclasses import dataclass, field

from grader.common.contract import Profile
from grader.grading.checkpoint import Measured, Metrics
from grader.run.launch import Run
from grader.run.worker_log import Worker


@dataclass(frozen=True)
class Evidence:
    """The run from outside, the workers' own lines, and what was measured of the files it left.

    An `_error` is the one line for the learner why a figure is missing; the figure is None then. `visible_images`: how
    many test images the run could look at. `gpus`: how many the run could use. `timeline`: Horovod's, as written.
    """

    profile: Profile
    run: Run
    workers: list[Worker]
    log: str
    metrics: list[Metrics]
    metrics_error: str
    checkpoint: Measured | None
    checkpoint_error: str
    visible_images: int
    gpus: int = 0
    timeline: bytes = field(default=b"", repr=False)

    def share(self) -> float:
        """How much of the training was seen, in updates of the reference: 0 to 1, more if the run made more."""
        return min(len(worker.updates) for worker in self.workers) / self.profile.updates()

    def connected(self) -> bool:
        """Whether Horovod connected all workers."""
        return all(worker.first and worker.first.size == len(self.workers) for worker in self.workers)
