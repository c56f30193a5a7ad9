"""Writes grades into a learning platform's own table, in the form in which the platform imports them.

An instructor exports the table from the platform, and imports the new one there. The forms, and where they come from:

- Canvas: the gradebook's export. The second row says how many points are possible. (Canvas's `gradebook_importer.rb`.)
- Moodle: the gradebook's export as plain text, or the grading worksheet of one assignment. (Moodle's documentation of
  "Grade import", and its `assignfeedback_offline`.)
- Blackboard: the Grade Center's "Work offline". A title ends in `[Total Pts: 10 Score] |123`. (Blackboard's help.)
- Brightspace: the export of points. A title ends in `Points Grade <Numeric MaxPoints:10>`, and each row ends in `#`.
  (Brightspace's help on "Importing grades".)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.course import Course
from grader.classroom.nbgrader_plugins import score
from grader.classroom.publishing import roster
from grader.classroom.publishing.roster import Form, RosterError, Table
from grader.common.atomic_write import write_whole
from grader.common.text import quoted

POSSIBLE = "Points Possible"  # in the first cell of Canvas's second row
LAST_COLUMN = "End-of-Line Indicator"  # of Brightspace
PERCENT = 100.0


@dataclass(frozen=True)
class Platform:
    """A platform's form of a table: how it names students, and how it titles an assignment's column.

    `title` finds an assignment's name in a column's title, and its points if the title has them.
    """

    students: Form
    title: re.Pattern


PLATFORMS = {
    "canvas": Platform(
        Form(("Student", "ID"), ("SIS Login ID", "SIS User ID"), number="ID"),
        re.compile(r"(?P<name>.+?)(?: \(\d+\))?"),
    ),
    "moodle": Platform(
        Form(
            ("Email address",), ("ID number", "Username", "Email address"),
            (("First name", "Last name"), ("First name", "Surname"), ("Full name",)),
        ),
        re.compile(r"(?:[^:]+: )?(?P<name>.+?)(?: \((?:Real|Percentage)\))?"),
    ),
    "blackboard": Platform(
        Form(("Username",), ("Username", "Student ID")),
        re.compile(r"(?P<name>.+?) \[[^\]]*?Pts: (?P<max>[\d.,]+)[^\]]*\](?: ?\|\d+)?"),
    ),
    "brightspace": Platform(
        Form((LAST_COLUMN,), ("OrgDefinedId", "Username", "Email"), (("First Name", "Last Name"),)),
        re.compile(r"(?P<name>.+?) Points Grade(?: <Numeric MaxPoints:(?P<max>[\d.,]+)[^>]*>)?"),
    ),
}  # fmt: skip

WORKSHEET = Platform(
    Form(("Identifier", "Grade"), ("ID number", "Username", "Email address"), (("Full name",),)),
    re.compile("Grade"),
)  # fmt: skip


@dataclass(frozen=True)
class Grades:
    """An assignment's title on the platform, its points, and the students' grades."""

    title: str
    points: float
    students: dict[str, float]


@dataclass
class Filled:
    """What was written: the number of grades, and students without a row and why."""

    path: Path
    grades: int = 0
    without_row: dict[str, str] = field(default_factory=dict)


def fill(course: Course, platform: str, path: Path, percent: bool = False, assignment: str | None = None) -> Filled:
    """Write the course's grades into a copy of the platform's table at `path`. Other cells stay as they are.

    The points are those after the late penalty. With `percent` they are in per cent of the assignment's points.
    `assignment` is the only one to write, or None for all that are not dropped. Raises RosterError.
    """
    table, form = roster.read(path), PLATFORMS[platform]
    if platform == "moodle" and all(title in table.header for title in WORKSHEET.students.needed):
        form = WORKSHEET
        if assignment is None:
            raise RosterError(f"{path} is the grading worksheet of one assignment: name it with --assignment")
    graded = course.graded
    students = sorted({student for student, _ in graded})
    rows, without_row = roster.rows_of(table, form.students, students)
    filled = Filled(course.root / "export" / f"{platform}{path.suffix or '.csv'}", without_row=without_row)
    for grades in _grades(course, graded, assignment):
        _fill_column(table, form, grades, rows, percent, filled)
    filled.path.parent.mkdir(exist_ok=True)
    write_whole(filled.path, table.text(), table.encoding)
    return filled


def _fill_column(
    table: Table, form: Platform, grades: Grades, rows: dict[str, int], percent: bool, filled: Filled
) -> None:
    """Write one assignment's grades into its column."""
    most = PERCENT if percent else grades.points
    column = _column(table, form, grades.title)
    _check_points(table, form, column, most)
    for student, grade in grades.students.items():
        if student in rows:
            cell = grade / grades.points * PERCENT if percent and grades.points else grade
            _put(table, rows[student], column, f"{cell:.2f}".rstrip("0").rstrip("."))
            filled.grades += 1


def _grades(course: Course, graded: list[tuple[str, str]], only: str | None) -> Iterator[Grades]:
    """The grades of each assignment, from the students and assignments in `graded`.

    Raises RosterError if there is no assignment `only`.
    """
    if only is not None and only not in course.assignments:
        raise RosterError(f"no assignment {quoted(only)}; released are: {', '.join(course.assignments)}")
    with course.gradebook as gradebook:
        points = {assignment.name: float(assignment.max_score) for assignment in gradebook.assignments}
        for name in [only] if only else course.assignments:
            rules = course.policy.assignment(name)
            if name not in points or (rules.dropped and not only):
                continue
            students = {who: score(gradebook, name, who) or 0.0 for who, what in graded if what == name}
            if students:
                yield Grades(rules.column or name, points[name], students)


def _column(table: Table, form: Platform, name: str) -> str:
    """The title of the column of an assignment's grades. Raises RosterError if there is none, or several titles fit."""
    if form is WORKSHEET:
        return "Grade"
    fitting = [title for title in table.header if (match := form.title.fullmatch(title)) and match["name"] == name]
    if len(fitting) > 1:
        raise RosterError(f"the table has several columns for {name}: {', '.join(map(quoted, fitting))}")
    if not fitting:
        titles = ", ".join(map(quoted, table.header))
        raise RosterError(
            f"the table has no column for {name}; it has: {titles}. Write the right name as `column` of the assignment "
            f"into policy.toml, or make an assignment {name} on the platform"
        )
    return fitting[0]


def _check_points(table: Table, form: Platform, column: str, points: float) -> None:
    """Raise RosterError if the platform gives the assignment another number of points."""
    match = form.title.fullmatch(column)
    stated = {match.groupdict().get("max") if match else None}
    for number, row in enumerate(table.rows):
        if form is WORKSHEET and number:
            stated.add(table.cell(number, "Maximum Grade"))
        if _is_possible(row):
            stated.add(table.cell(number, column))
    for text in filter(None, stated):
        if re.fullmatch(r"\d+([.,]\d+)?", text) and float(text.replace(",", ".")) != points:
            raise RosterError(
                f"{quoted(column)} has {text} points in the table, and the grades are out of {points:g}: "
                "change its points on the platform, or export with --as percent or --as points"
            )


def _is_possible(row: list[str]) -> bool:
    return bool(row) and row[0].strip() == POSSIBLE


def _put(table: Table, row: int, column: str, text: str) -> None:
    cells, place = table.rows[row], table.header.index(column)
    cells += [""] * (place + 1 - len(cells))
    cells[place] = text
