"""All that is known of one run when it is judged."""

from dataclasses import dataclass

from grader.evaluate import Metrics
from grader.launch import Run
from grader.observation import Worker
from grader.profile import Profile


@dataclass(frozen=True)
class Evidence:
    """The run from outside, the workers' own lines, and what was measured of the files it left.

    An `_error` is the one line for the learner why a figure is missing; the figure is None then.
    """

    profile: Profile
    run: Run
    workers: list[Worker]
    log: str
    metrics: list[Metrics]
    metrics_error: str
    checkpoint_error: str
    visible_accuracy: float | None
    secret_accuracy: float | None
    visible_images: int
