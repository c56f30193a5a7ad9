"""The rubric as data: the points of each line, the lines that it depends on, and what a pass needs.

The checks lie in `grader.grading.checks`. A check's docstring is what the line asks of the learner. A mistake is
penalised only once: if one line fails because of another, it keeps its points and the report says why.
"""

from collections.abc import Callable
from dataclasses import dataclass

from grader.grading.checks.accuracy import target
from grader.grading.checks.files import checkpoint, metrics, one_writer
from grader.grading.checks.finding import Finding
from grader.grading.checks.gradients import averaged, same_start
from grader.grading.checks.images import batch, shards
from grader.grading.checks.launch import begins, device, ends
from grader.grading.checks.learning_rate import rate
from grader.grading.evidence import Evidence

Check = Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Line:
    """A line of the rubric. All lines but `begins` are judged only if every worker made at least one update.

    `follows`: ids of lines above it. If one of them is not met, it is the mistake, and this line is its consequence
    and keeps its points. `needs_end`: the line can only be judged of a run that ended well, unless its mistake was seen
    already.
    """

    id: str
    points: int
    check: Check
    follows: tuple[str, ...] = ()
    needs_end: bool = False

    @property
    def asks(self) -> str:
        """What the line asks for, in the check's words."""
        return self.check.__doc__


RUBRIC = (
    Line("begins", 5, begins),
    Line("ends", 10, ends),
    Line("device", 5, device),
    Line("averaged", 20, averaged),
    Line("same_start", 10, same_start, follows=("averaged",)),
    Line("shards", 10, shards, follows=("ends",), needs_end=True),
    Line("batch", 5, batch),
    Line("rate", 10, rate, follows=("ends",), needs_end=True),
    Line("checkpoint", 5, checkpoint, follows=("ends", "averaged"), needs_end=True),
    Line("one_writer", 5, one_writer, needs_end=True),
    Line("metrics", 5, metrics, needs_end=True,
         follows=("ends", "averaged", "same_start", "checkpoint", "one_writer")),
    Line("target", 10, target, needs_end=True,
         follows=("ends", "averaged", "same_start", "shards", "batch", "rate", "checkpoint")),
)  # fmt: skip


@dataclass(frozen=True)
class Need:
    """What a pass needs: a share (0 to 1) of the points of a line, earned by the line itself. `says` is a sentence."""

    line: str
    share: float
    says: str


PASS_NEEDS = (
    Need("ends", 0.5, "the run ended well"),
    Need("averaged", 1, "every worker applied the mean of all workers' gradients"),
    Need("same_start", 1, "all workers held the same weights from the start to the end"),
    Need("shards", 0.5, "each training image was used by one worker"),
    Need("target", 1, "the network reached the target on images that the run never saw"),
)
