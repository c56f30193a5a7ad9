"""Records of grades: one small file per submission.

Autograding reads them to grade again only what has changed. The class's summary is made from them.
"""

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from grader.common.atomic_write import write_whole

Run = tuple[str, float | None, str | None]  # a kind of run of the four-worker program: its profile, target and data
FOUR_WORKERS = "four_workers"  # the grade_id of the cell that earns the four-worker program's points


class Line(BaseModel, frozen=True):
    """A part of a grade cell's points: a group of an exercise's test cases, or a line of the assignment's rubric."""

    cell: str
    name: str
    points: float
    max: float
    message: str


class Record(BaseModel, frozen=True):
    """The grade of one submission.

    `source` is the hash of what was submitted. `passed` says whether the four-worker run passed on `profile`; it is
    None in an assignment without a four-worker program. `worth_a_look` has lines of the program that an instructor may
    want to read. `attempt` counts what was handed in and graded, and `sources` holds the hash of each attempt.
    `counted` is the attempt whose grade this is, and `handed_in` is its time stamp, in UTC. `target` and `data`
    are the policy's for the four-worker program, or None.
    """

    source: str
    profile: str
    lines: list[Line]
    problems: list[str]
    passed: bool | None
    graded: str  # the time of grading, in ISO 8601
    seconds: float
    worth_a_look: list[str] = []
    attempt: int = 1
    sources: list[str] = []
    counted: int = 1
    target: float | None = None
    data: str | None = None
    handed_in: datetime | None = None
    schema_: Literal[1] = 1

    @property
    def points(self) -> float:
        return round(sum(line.points for line in self.lines), 2)

    @property
    def run(self) -> Run:
        """What kind of run the four-worker program was judged by."""
        return self.profile, self.target, self.data

    def is_comparable(self, other: "Record") -> bool:
        """Whether two grades of an assignment come from runs of the same kind. Exercises have no runs."""
        return self.passed is None or self.run == other.run


def load(path: Path) -> Record | None:
    """The record at `path`. None if there is none that can be read: then the submission is graded again."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def forget(path: Path) -> None:
    """Set the record at `path` aside, so that the submission is graded again. `earlier` still finds it."""
    if path.exists():
        path.replace(_aside(path))


def bring_back(path: Path) -> None:
    """Undo `forget`, if there is no new record."""
    if not path.exists() and _aside(path).exists():
        _aside(path).replace(path)


def earlier(path: Path) -> Record | None:
    """The record that a new one will replace: the present one, or the one that was set aside."""
    return load(path) or load(_aside(path))


def _aside(path: Path) -> Path:
    return path.with_suffix(".before")


def changes(before: Record, after: Record) -> list[str]:
    """Say in one line for each line of the grade what has changed. The list is empty if all is the same."""
    old, new = ({(line.cell, line.name): line for line in one.lines} for one in (before, after))
    changed = []
    for key in dict.fromkeys([*old, *new]):
        was, now = (lines[key].points if key in lines else None for lines in (old, new))
        if was != now:
            told = ["no such line" if points is None else f"{points:g}" for points in (was, now)]
            changed.append(f"{key[0]}, {key[1]}: {told[0]} before, {told[1]} now")
    return changed


def save(record: Record, path: Path) -> None:
    """Write a record, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, record.model_dump_json(indent=1) + "\n")
    _aside(path).unlink(missing_ok=True)
