"""Judges one run by the rubric. It turns the evidence into a report."""

import platform
from dataclasses import dataclass, field
from typing import Literal

import torch

from grader.common.contract import WORKERS, Profile
from grader.grading.audit import Audit
from grader.grading.evidence import Evidence
from grader.grading.rubric import MUST_PASS, RUBRIC, Line

FIRST = RUBRIC[0].id  # this line asks for updates, and without them there is no evidence for the other lines
MIN_EPOCHS_TO_EXCUSE = 0.5  # epochs; a run that ended earlier shows too little to be excused for the rest
Status = Literal["met", "unmet", "excused", "not_judged"]


@dataclass(frozen=True)
class Row:
    """A row is a rubric line as it was judged.

    `status` is one of four words. A line is `met` or `unmet`. It is `excused` if it is not met because another line is
    not met, and it then keeps its points. It is `not_judged` if the first line is not met. `max` is the number of
    points that the line can earn.
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
    `audit` is what the questions to the workers have shown.
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


@dataclass(frozen=True)
class Report:
    """A report holds a grade: whether it is a pass, its points out of 100, and its rows.

    `isolation` says what held the run. `record` is None for a submission that was not run.
    """

    submission: str
    passed: bool
    points: float
    rows: list[Row]
    isolation: str
    record: RunRecord | None


def judge(evidence: Evidence, submission: str, record: RunRecord | None) -> Report:
    """Apply the rubric, line by line."""
    rows: dict[str, Row] = {}
    for line in RUBRIC:
        rows[line.id] = _judge_line(line, evidence, rows)
    passed = all(rows[id].status == "met" for id in MUST_PASS)
    points = sum(row.points for row in rows.values())
    return Report(submission, passed, points, list(rows.values()), evidence.run.isolation, record)


def _judge_line(line: Line, evidence: Evidence, rows: dict[str, Row]) -> Row:
    """Judge one line. `rows` has the rows of the lines above it."""
    if line.id != FIRST and rows[FIRST].status != "met":
        return Row(line.id, "not_judged", 0, line.points, line.asks, "not judged", f'First: "{rows[FIRST].asks}".')
    finding = line.check(evidence)
    causes = [id for id in line.follows if rows[id].status != "met"]
    if finding.share < 1 and causes and _excusable(evidence):
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
    asked = {line.id: line.asks for line in RUBRIC}
    return (
        f"{WORKERS} Horovod workers trained one network, over {profile.epochs} epochs of {profile.train_images:,} "
        f"images of re-keyed CIFAR-10, and earned {points:g} of 100 points.",
        "A grader that watched the run from inside and outside saw:",
        *(f"{asked[id][0].lower()}{asked[id][1:]}{'.' if id == MUST_PASS[-1] else ';'}" for id in MUST_PASS),
        f"The target is {profile.target:.1%} of {profile.test_images:,} images.",
    )
