"""Reads a learning platform's own table of its students, and finds the rows of a course's students in it.

The table is written back with the same encoding, columns and rows, so that the platform knows each of them again.
"""

import codecs
import csv
import io
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.collecting.students import student_id
from grader.common.errors import GraderError

DELIMITERS = "\t;,"
CANVAS_ID = re.compile(r".+-(\d+)")  # an id that was made from a file of Canvas's bulk download
MAX_BYTES = 64 * 2**20  # of a table


class RosterError(GraderError):
    """The table cannot be used. The message is one line that says what to do."""


@dataclass(frozen=True)
class Form:
    """How a platform's table names a student.

    `needed` are columns that tell it from other tables. `ids` are columns with something that is one student's alone.
    `names` are pairs of columns that make a full name, or single ones. `number` is the column with Canvas's number.
    """

    needed: tuple[str, ...]
    ids: tuple[str, ...]
    names: tuple[tuple[str, ...], ...] = ()
    number: str | None = None


@dataclass
class Table:
    """A table as it was read: its rows of cells, of which the first is the header, and how it was written."""

    rows: list[list[str]]
    encoding: str
    delimiter: str

    @property
    def header(self) -> list[str]:
        """The titles of the columns, without spaces around them."""
        return [title.strip() for title in self.rows[0]]

    def cell(self, row: int, column: str) -> str:
        """The text of a cell, or "" if there is no such column or the row is shorter."""
        cells = dict(zip(self.header, self.rows[row], strict=False))
        return cells.get(column, "").strip()

    def text(self) -> str:
        """The table as it is written to a file."""
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\r\n").writerows(self.rows)
        return text.getvalue()


def read(path: Path) -> Table:
    """Read a table of comma-, semicolon- or tab-separated cells. Raises RosterError if it is none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RosterError(f"{path}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise RosterError(f"{path} has more than {MAX_BYTES:,} bytes")
    text, encoding = _decoded(content)
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise RosterError(f"{path} is no table of separated cells: {error}") from None
    if not rows or len(rows[0]) < 2:
        raise RosterError(f"{path} is no table of separated cells; export it from the platform as CSV")
    return Table(rows, encoding, delimiter)


def _decoded(content: bytes) -> tuple[str, str]:
    """The text of a file, and its encoding. Blackboard writes UTF-16. In Latin-1 any text comes back as it was."""
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_utf_16 else "utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "utf-8"
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError:
        return content.decode("latin-1"), "latin-1"


def rows_of(table: Table, form: Form, students: list[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Find the row of each student.

    Returns the rows' numbers, and why other students have none: nobody in the table fits, or several people do.
    """
    missing = [title for title in form.needed if title not in table.header]
    if missing:
        raise RosterError(f"the table has no column {', '.join(missing)}; its columns: {', '.join(table.header[:12])}")
    by_key: dict[str, set[int]] = defaultdict(set)
    for row in range(1, len(table.rows)):
        for key in _row_keys(table, form, row):
            by_key[key].add(row)
    found, problems = {}, {}
    for student in students:
        rows = set().union(*(by_key.get(key, set()) for key in _student_keys(student, form)))
        if len(rows) == 1:
            found[student] = rows.pop()
        else:
            problems[student] = "several rows of the table fit" if rows else "no row of the table fits"
    for student, row in list(found.items()):
        if sharing := [other for other, place in found.items() if place == row and other != student]:
            problems[student] = f"the same row of the table fits {', '.join(sharing)}"
    return {student: row for student, row in found.items() if student not in problems}, problems


def _row_keys(table: Table, form: Form, row: int) -> set[str]:
    """What the id of a row's student may be, in lower case. Brightspace writes a `#` before each id."""
    keys = set()
    for column in form.ids:
        if value := table.cell(row, column).lstrip("#"):
            keys |= {student_id(value), student_id(value.partition("@")[0])}
    for columns in form.names:
        parts = [table.cell(row, column).lstrip("#") for column in columns]
        if all(parts):
            keys.add(student_id(" ".join(parts)))
    if form.number and (number := table.cell(row, form.number)):
        keys.add(f"number {number}")
    return {key.lower() for key in keys}


def _student_keys(student: str, form: Form) -> set[str]:
    match = CANVAS_ID.fullmatch(student)
    return {student.lower(), *({f"number {match[1]}"} if form.number and match else ())}
