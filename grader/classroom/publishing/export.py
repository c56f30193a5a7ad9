"""`python -m grader export`: the LMS's table (grades.csv) and the class at a glance (summary.html)."""

import argparse
import base64
import io
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure
from rich.console import Console

from grader.classroom.course import Course, CourseError
from grader.classroom.grading import record
from grader.classroom.grading.autograde import penalise
from grader.classroom.nbgrader_plugins import LmsExport
from grader.classroom.templates import template
from grader.common.atomic_write import write_whole
from grader.common.text import one_line

MISTAKES = 3  # shown of a cell, those that cost most learners points
LETTERS = 200  # of a mistake
BINS = 10


@dataclass(frozen=True)
class Cell:
    """A graded cell over the class: `points` of all who have a grade there; `mistakes`: what, and how many learners."""

    assignment: str
    name: str
    max: float
    points: list[float]
    mistakes: list[tuple[str, int]]


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0, or 2 before the first release."""
    course = Course(args.course.resolve())
    try:
        course.check()
        table, summary = export(course)
    except CourseError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    console.print(f"table: {table}\nsummary: {summary}", highlight=False, soft_wrap=True)
    return 0


def export(course: Course) -> tuple[Path, Path]:
    """Write both; their paths."""
    folder = course.root / "export"
    folder.mkdir(exist_ok=True)
    for names in course.graded:
        penalise(course, *names)
    table, summary = folder / "grades.csv", folder / "summary.html"
    plugin = LmsExport(config=course.config, to=str(table.with_suffix(".part")))
    with course.gradebook as gradebook:
        plugin.export(gradebook)
    Path(plugin.to).replace(table)
    write_whole(summary, page(cells(course)))
    return table, summary


def cells(course: Course) -> list[Cell]:
    """All graded cells in the lessons' order. What counts is the grader's points: manual ones are in the table."""
    found: dict[tuple[str, str], list[tuple[float, float, list[str]]]] = {}
    for student, assignment in course.graded:
        graded = record.load(course.record(student, assignment))
        for name in dict.fromkeys(line.cell for line in graded.lines) if graded else ():
            lines = [line for line in graded.lines if line.cell == name]
            wrong = [f"{line.name}: {line.message}" for line in lines if line.points < line.max]
            sums = sum(line.points for line in lines), sum(line.max for line in lines)
            found.setdefault((assignment, name), []).append((*sums, wrong))
    made = []
    for (assignment, name), rows in sorted(found.items()):
        points, most, wrong = zip(*rows, strict=True)
        made.append(Cell(assignment, name, max(most), list(points), _commonest(wrong)))
    return made


def _commonest(mistakes: Sequence[list[str]]) -> list[tuple[str, int]]:
    """Mistakes that several or most made, by the line that cost the points; an example tells them."""
    counts = Counter(one_line(text.partition(": ")[0]) for wrong in mistakes for text in wrong)
    examples = Counter(one_line(text) for wrong in mistakes for text in wrong)
    told = {name: max((one for one in examples if one.startswith(f"{name}: ")), key=examples.get) for name in counts}
    return [(told[name][:LETTERS], count) for name, count in counts.most_common(MISTAKES)]


def page(found: list[Cell]) -> str:
    """The summary as one HTML page."""
    return template("summary.html").render(cells=[(cell, _told(cell), _picture(cell)) for cell in found])


def _told(cell: Cell) -> str:
    full = sum(points == cell.max for points in cell.points)
    mean = f"mean {statistics.mean(cell.points):.2f} of {cell.max:g} points"
    return f"{len(cell.points)} graded, {mean}, {full} with all points."


def _picture(cell: Cell) -> Markup:
    """How many learners have how many points, as a picture that stands in the page."""
    figure = Figure(figsize=(4.2, 1.7), layout="constrained")
    ax = figure.subplots()
    ax.hist(cell.points, bins=BINS, range=(0, cell.max), color="#0b3c5d", edgecolor="white")
    ax.set(xlabel="points", ylabel="learners", xlim=(0, cell.max))
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    alt = Markup.escape(f"Distribution of the points of {cell.name}: {_told(cell)}")
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(
        alt, base64.b64encode(content.getvalue()).decode()
    )
