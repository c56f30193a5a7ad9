"""The contract between a submission and the grader: file names, limits, and the sizes of a run in `profiles.json`."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

ENTRY = "train.py"  # the file of a submission that is launched
CHECKPOINT, METRICS = "model.pt", "metrics.jsonl"  # what a run must leave in its output folder
MAX_CHECKPOINT_BYTES = 8 * 2**20  # ResNet9(width=16) has 1.7 MiB
MAX_METRICS_BYTES = 2**20
MAX_OUTPUT_BYTES = 2**20  # of what the workers print; the rest is dropped
MAX_WORKER_LOG_BYTES = 16 * 2**20  # for one worker; an honest run's log has less than 4 MiB
MAX_TIMELINE_BYTES = 4 * 2**20  # an honest run's timeline of three updates has 0.1 MiB
WORKERS = 4
NETWORK_WIDTH = 16
BASE_RATE = 0.1  # of the starter, for one worker


@dataclass(frozen=True)
class Profile:
    """Settings of a graded run. `batch_size` is per worker. `target` is a test accuracy, 0 to 1.

    A run that does not end well gets at most `max_points_without_end` points.
    """

    name: str
    epochs: int
    batch_size: int
    train_images: int
    test_images: int
    target: float
    max_points_without_end: int

    def of_the_run(self) -> dict[str, str | int]:
        """Return the settings that the run depends on. The others only say how it is judged."""
        judged_by = ("target", "max_points_without_end")
        return {name: value for name, value in vars(self).items() if name not in judged_by}

    def updates(self) -> int:
        """The number of updates that the reference solution makes."""
        return self.epochs * -(-(self.train_images // WORKERS) // self.batch_size)


def load(name: str, target: float | None = None) -> Profile:
    """The profile called `name`, with another target if one is given. Raises KeyError if there is none."""
    profile = Profile(name, **json.loads(Path(__file__).with_name("profiles.json").read_text())[name])
    return profile if target is None else replace(profile, target=target)
