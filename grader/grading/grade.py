"""Judges one run by the rubric. It turns the evidence into a report."""

import platform
from dataclasses import dataclass, field

import torch

from grader.common.contract import WORKERS, Profile
from grader.grading.audit import Audit
from grader.grading.evidence import Evidence
from grader.grading.rubric import PASS_NEEDS, RUBRIC, Line, Need
from grader.grading.status import Status

FIRST = RUBRIC[0].id  # this line asks for updates, and without them there is no evidence for the other lines
MIN_EPOCHS_TO_EXCUSE = 0.5  # epochs; a run that ended earlier shows too little to be excused for the rest
EARLY_END = "The run did not end well, so this could not be judged."


@dataclass(frozen=True)
class Row:
    """A row is a rubric line as it was judged.

    `status` is one of four words. A line is `met` or `unmet`. It is `excused` if it is not met because another line is
    not met, and it then keeps its points. It is `not_judged` if no worker made an update, or if the run did not end
    well and the line can only be judged at the end. It then has no points. `max` is the number of points that the line
    can earn.
    """

    id: str
    status: Status
    points: float
    max: int
    asks: str
    seen: str
    message: str


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The record says how a grade was measured.

    The key is kept as its SHA-256, because it may be the instructor's secret. `cpu_seconds` has the seconds by rank.
    `audit` is what the questions to the workers have shown. `worth_a_look` names lines of the program that an
    instructor may want to read.
    `secret_accuracy` (0 to 1) is the accuracy on the images that the run never saw, or None if it was not measured.
    """

    profile: dict
    seed: int
    key_sha256: str
    seconds: float
    versions: dict[str, str]
    source_sha256: str
    cpu_seconds: dict[int, float]
    secret_accuracy: float | None
    audit: Audit = field(default_factory=Audit)
    worth_a_look: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """A report holds a grade: whether it is a pass, its points out of 100, and its rows.

    `isolation` says what held the run. `record` is None for a submission that was not run. `needs` has the sentences
    that say what a pass needs, and whether the run showed it. `limit` says why the points are fewer than those of the
    rows, and it is empty if they are not.
    """

    submission: str
    passed: bool
    points: float
    rows: list[Row]
    isolation: str
    record: RunRecord | None
    needs: dict[str, bool] = field(default_factory=dict)
    limit: str = ""


def judge(evidence: Evidence, submission: str, record: RunRecord | None) -> Report:
    """Apply the rubric, line by line."""
    rows: dict[str, Row] = {}
    for line in RUBRIC:
        rows[line.id] = _judge_line(line, evidence, rows)
    needs = {need.says: _shown(need, rows[need.line]) for need in PASS_NEEDS}
    points, limit = _limited(sum(row.points for row in rows.values()), evidence)
    return Report(
        submission, all(needs.values()), points, list(rows.values()), evidence.run.isolation, record, needs, limit
    )


def _shown(need: Need, row: Row) -> bool:
    return row.status in ("met", "unmet") and row.points >= need.share * row.max


def _limited(points: float, evidence: Evidence) -> tuple[float, str]:
    """Return the points of a run, and why they are fewer than `points`. A run that did not end well has a limit."""
    most = evidence.profile.max_points_without_end
    if evidence.ended_well() or points <= most:
        return points, ""
    return most, f"A run that does not end well gets at most {most} points."


def _judge_line(line: Line, evidence: Evidence, rows: dict[str, Row]) -> Row:
    """Judge one line. `rows` has the rows of the lines above it."""
    if line.id != FIRST and rows[FIRST].status != "met":
        return Row(line.id, "not_judged", 0, line.points, line.asks, "not judged", f'First: "{rows[FIRST].asks}".')
    finding = line.check(evidence)
    if finding.share < 1 and line.needs_end and not finding.certain and not evidence.ended_well():
        return Row(line.id, "not_judged", 0, line.points, line.asks, finding.seen, EARLY_END)
    causes = [id for id in line.follows if rows[id].status != "met"]
    if finding.share < 1 and causes and not finding.certain and _excusable(evidence):
        message = f'Follows from the line "{rows[causes[0]].asks}", and costs nothing more.'
        return Row(line.id, "excused", line.points, line.points, line.asks, finding.seen, message)
    status = "met" if finding.share == 1 else "unmet"
    return Row(line.id, status, line.points * finding.share, line.points, line.asks, finding.seen, finding.advice)


def _excusable(evidence: Evidence) -> bool:
    """Return whether a line can be excused. The workers must have been connected and have trained for long enough."""
    return evidence.connected() and evidence.share() * evidence.profile.epochs >= MIN_EPOCHS_TO_EXCUSE


def versions() -> dict[str, str]:
    """Return the versions of the software that the grade was measured with."""
    from importlib.metadata import version

    return {"python": platform.python_version(), "torch": torch.__version__, "horovod": version("horovod")}


def shown_by_a_pass(profile: Profile, points: float) -> tuple[str, ...]:
    """Return sentences for a certificate. They say what every run of this size that passes has shown, and no more."""
    return (
        f"{WORKERS} Horovod workers trained one network, over {profile.epochs} epochs of {profile.train_images:,} "
        f"images of re-keyed CIFAR-10, and earned {points:g} of 100 points.",
        "A grader that watched the run from inside and outside saw:",
        *(f"{need.says}{'.' if need is PASS_NEEDS[-1] else ';'}" for need in PASS_NEEDS),
        f"The target is {profile.target:.1%} of {profile.test_images:,} images.",
    )
