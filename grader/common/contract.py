"""How a submission is run and what it must reach: declared in `profiles.json`, a size each."""

import json
from dataclasses import dataclass
from pathlib import Path

WORKERS = 4
NETWORK_WIDTH = 16
BASE_RATE = 0.1  # of the starter, for one worker


@dataclass(frozen=True)
class Profile:
    """Settings of a graded run. `batch_size` is images a worker; `target` a test accuracy, 0 to 1."""

    name: str
    epochs: int
    batch_size: int
    train_images: int
    test_images: int
    target: float

    def updates(self) -> int:
        """Updates that the reference makes."""
        return self.epochs * -(-(self.train_images // WORKERS) // self.batch_size)


def load(name: str) -> Profile:
    """The profile called `name`; KeyError if there is none."""
    return Profile(name, **json.loads(Path(__file__).with_name("profiles.json").read_text())[name])
