"""Records of grades: one small file per submission.

Autograding reads them to grade again only what has changed. The class's summary is made from them.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from grader.common.atomic_write import write_whole

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
    want to read.
    """

    source: str
    profile: str
    lines: list[Line]
    problems: list[str]
    passed: bool | None
    graded: str  # the time of grading, in ISO 8601
    seconds: float
    worth_a_look: list[str] = []
    schema_: Literal[1] = 1

    @property
    def points(self) -> float:
        return round(sum(line.points for line in self.lines), 2)


def load(path: Path) -> Record | None:
    """The record at `path`. None if there is none that can be read: then the submission is graded again."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def save(record: Record, path: Path) -> None:
    """Write a record, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, record.model_dump_json(indent=1) + "\n")
