"""What was graded of a submission, a small file each: it tells what need not be graded again, and feeds the summary."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from grader.common.atomic_write import write_whole


class Line(BaseModel, frozen=True):
    """A part of a grade cell's points: a group of probes of an exercise, or a line of the assignment's rubric."""

    cell: str
    name: str
    points: float
    max: float
    message: str


class Record(BaseModel, frozen=True):
    """`source`: hash of what was handed in. `passed`: the four-worker run did, on `profile`; None if there is none."""

    source: str
    profile: str
    lines: list[Line]
    problems: list[str]
    passed: bool | None
    graded: str  # when, ISO 8601
    seconds: float
    schema_: Literal[1] = 1

    @property
    def points(self) -> float:
        return round(sum(line.points for line in self.lines), 2)


def load(path: Path) -> Record | None:
    """The record at `path`; None if there is none, or none that can be read: then the submission is graded again."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def save(record: Record, path: Path) -> None:
    """Write it, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, record.model_dump_json(indent=1) + "\n")
