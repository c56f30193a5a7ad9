"""A batch's journal: one line with its settings, then one line per graded submission.

A line is on the disk before the next submission counts. The file is appended to, or replaced as a whole. A kill can
therefore tear the last line only, and a torn line counts as not written.
"""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class JournalError(GraderError):
    """The batch cannot continue with this journal. The message is one line."""


@checked_dataclass(frozen=True, config=STRICT)
class Settings:
    """What all grades of a batch have in common, in the journal's first line.

    `grader` is the hash of the grader's source. `target` is a test accuracy, or None for that of the profile. `data` is
    a folder with data of one's own, or None for CIFAR-10.
    """

    profile: str
    key: str
    seed: int
    isolation: Literal["sandbox", "no_sandbox"]
    grader: str
    target: float | None = None
    data: str | None = None
    schema: Literal[1] = 1


@checked_dataclass(frozen=True, config=STRICT)
class Result:
    """What became of one submission: one line of the journal, and one row of the results.

    `source` is the hash of its files. `folder` is the name of its report's folder. `lines` holds the points by rubric
    line. `message` is the first thing to change.
    """

    name: str
    source: str
    folder: str
    points: float
    passed: bool
    lines: dict[str, float]
    seconds: float
    message: str


@dataclass(frozen=True)
class Content:
    """What a journal says.

    `settings` is None if it has no line. `length` is the number of bytes up to the end of its last whole line.
    """

    settings: Settings | None
    results: list[Result]
    length: int


def read(content: bytes) -> Content:
    """Read a journal from its bytes. The last line may be torn. Raises JournalError, which names a damaged line."""
    length = content.rfind(b"\n") + 1
    lines = content[:length].split(b"\n")[:-1]
    if not lines:
        return Content(None, [], 0)
    results = [_parse(line, Result, number) for number, line in enumerate(lines[1:], start=2)]
    return Content(_parse(lines[0], Settings, 1), results, length)


Line = TypeVar("Line", Settings, Result)


def _parse(line: bytes, kind: type[Line], number: int) -> Line:
    try:
        return TypeAdapter(kind).validate_json(line)
    except ValidationError:
        advice = "use another --output" if number == 1 else "delete that line, and its submission is graded again"
        raise JournalError(f"line {number} of the journal is damaged: {advice}") from None


class Journal:
    """A journal that is open for more lines. `results` holds each folder's last result, whose report is there."""

    def __init__(self, path: Path, settings: Settings):
        """Continue the journal at `path`, or begin it. Raises JournalError if it has other settings, or is damaged."""
        content = read(path.read_bytes() if path.exists() else b"")
        if content.settings:
            _check_same(content.settings, settings)
        self.results = {result.folder: result for result in content.results}
        self.file = path.open("ab")
        self.file.truncate(content.length)
        if not content.settings:
            self._append(settings)
            _sync_folder(path.parent)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()

    def add(self, result: Result) -> None:
        """Add a line. It is on the disk when this returns."""
        self._append(result)
        self.results[result.folder] = result

    def _append(self, line: Settings | Result) -> None:
        self.file.write(json.dumps(asdict(line)).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def remove_results(path: Path, folders: set[str]) -> None:
    """Remove the results of `folders` from the journal at `path`, so that these submissions are graded again."""
    if not path.exists():
        return
    content = read(path.read_bytes())
    if content.settings:
        lines = [content.settings, *(result for result in content.results if result.folder not in folders)]
        write_whole(path, "".join(json.dumps(asdict(line)) + "\n" for line in lines))


def _check_same(existing: Settings, wanted: Settings) -> None:
    names = [field.name for field in fields(Settings) if getattr(existing, field.name) != getattr(wanted, field.name)]
    if names == ["grader"]:
        raise JournalError("the grader has changed since this batch began: use another --output to grade all again")
    if names:
        raise JournalError(
            f"this batch began with another {' and '.join(names)}: give the same options as then, or another --output"
        )


def read_key(path: Path) -> str | None:
    """The key of the journal at `path`, or None if there is no journal yet. Raises JournalError if it is damaged."""
    settings = read(path.read_bytes() if path.exists() else b"").settings
    return settings.key if settings else None


def _sync_folder(folder: Path) -> None:
    """Write a new file's name to the disk: syncing the file writes its content only."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
