"""Reads the names that learning platforms give to the files of a bulk download.

Moodle makes a folder for each student (`student_id` in import_submissions.py reads its name). The other platforms have
these forms. `STUDENT` is a name, an account, or both:

- Canvas: one flat folder of `lovelaceada_1001_500001_03_name.ipynb`. The numbers are those of the student and of the
  file. `_LATE_` may stand before them, and `-1` at the end of a name that was handed in again. (Public programs that
  read these downloads.)
- Blackboard: one flat folder of `Homework 3_alovelace_attempt_2026-01-31-23-59-07_03_name.ipynb`, with all attempts.
  (The example in nbgrader's documentation of its zip collector.)
- Brightspace: a folder `1234-5678 - Ada Lovelace - Jan 31, 2026 1159 PM` for each attempt, or `... - 31 January 2026
  1159 PM`. (Public programs that read these downloads.)
"""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<user>\d+)_(?P<file>\d+)_(?P<rest>.+)", re.DOTALL)
BLACKBOARD = re.compile(r".+_(?P<user>[^_]+)_attempt_(?P<time>\d{4}(?:-\d\d){5})_(?P<rest>.+)", re.DOTALL)
BRIGHTSPACE = re.compile(r"\d+-\d+ - (?P<name>.+?) - (?P<time>[\w, ]*\d{4} \d{1,4} [AP]M)", re.DOTALL)
DAYS = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")  # how Brightspace writes a day; it depends on the language
COPY = re.compile(r"(?P<stem>.+?)(?:-\d{1,3}| ?\(\d{1,3}\))(?P<suffix>\.\w+)", re.DOTALL)  # a browser's or Canvas's


class HandIn(NamedTuple):
    """A file of a student. `order` tells attempts apart: the greatest is the last. `inner` is the file's own path."""

    student: str
    order: str
    inner: PurePosixPath

    @property
    def place(self) -> PurePosixPath:
        """Where the file belongs: the student's folder, and the file's own path in it."""
        return PurePosixPath(self.student) / self.inner


def arrange(paths: Iterable[PurePosixPath], names: set[str]) -> dict[PurePosixPath, PurePosixPath | None]:
    """Return for each path in a platform's form where it belongs: STUDENT/file. An earlier attempt belongs nowhere.

    `names` are the file names that are expected. A copy such as `name-1.ipynb` or `name (1).ipynb` gets such a name
    back. Paths in another form are not in the result.
    """
    found = {path: hand_in for path in paths if (hand_in := _read(path, names))}
    last: dict[PurePosixPath, PurePosixPath] = {}  # the path of the last attempt, by where it belongs
    for path in sorted(found, key=lambda path: (found[path].order, str(path))):
        last[found[path].place] = path
    return {path: one.place if last[one.place] == path else None for path, one in found.items()}


def _read(path: PurePosixPath, names: set[str]) -> HandIn | None:
    """Read a path in a platform's form, at the top or in one folder around all."""
    if len(path.parts) <= 2:
        if match := BLACKBOARD.fullmatch(path.name):
            return HandIn(match["user"], match["time"], _own_name(match["rest"], names))
        if match := CANVAS.fullmatch(path.name):
            return HandIn(f"{match['name']}-{match['user']}", match["file"].zfill(20), _own_name(match["rest"], names))
    for depth, folder in enumerate(path.parts[:2]):
        match = BRIGHTSPACE.fullmatch(folder)
        if match and len(path.parts) > depth + 1:
            *folders, name = path.parts[depth + 1 :]
            inner = PurePosixPath(*folders, _own_name(name, names))
            return HandIn(match["name"], _brightspace_time(match["time"]), inner)
    return None


def _own_name(name: str, names: set[str]) -> PurePosixPath:
    """The name under which a file was handed in, without the mark of a copy."""
    copy = COPY.fullmatch(name)
    original = f"{copy['stem']}{copy['suffix']}" if copy else name
    return PurePosixPath(original if original in names else name)


def _brightspace_time(text: str) -> str:
    """A time such as `Jan 31, 2026 1159 PM` in a form that can be sorted. A time that no clock shows comes first."""
    day, clock, half = re.fullmatch(r"(.+) (\d+) (\w+)", text).groups()
    for form in DAYS:
        try:
            return datetime.strptime(f"{day} {clock.zfill(4)} {half}", f"{form} %I%M %p").isoformat()
        except ValueError:
            continue
    return ""
