"""Exports the class's grades: the LMS's table (grades.csv) and the class at a glance (summary.html)."""

import base64
import io
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from grader.classroom.course import Course
from grader.classroom.grading import record
from grader.classroom.grading.gradebook import update_late_penalty
from grader.classroom.nbgrader_plugins import LmsExport
from grader.classroom.templates import template
from grader.common.atomic_write import write_whole
from grader.common.text import one_line

MAX_MISTAKES = 3  # shown per cell: those that cost the most students points
MAX_MISTAKE = 200  # characters of a mistake
BINS = 10  # of a histogram


@dataclass(frozen=True)
class Cell:
    """A graded cell over the class.

    `points` holds the points of all who have a grade there. `mistakes` holds what was wrong, and for how many students.
    """

    assignment: str
    name: str
    max: float
    points: list[float]
    mistakes: list[tuple[str, int]]


def export(course: Course) -> tuple[Path, Path]:
    """Write the table and the summary, and return their paths. Raises CourseError before the first release."""
    course.check()
    folder = course.root / "export"
    folder.mkdir(exist_ok=True)
    for student, assignment in course.graded:
        update_late_penalty(course, student, assignment)
    table, summary = folder / "grades.csv", folder / "summary.html"
    plugin = LmsExport(config=course.config, to=str(table.with_suffix(".part")))
    with course.gradebook as gradebook:
        plugin.export(gradebook)
    Path(plugin.to).replace(table)
    write_whole(summary, page(cells(course), looks(course)))
    return table, summary


def cells(course: Course) -> list[Cell]:
    """All graded cells in the lessons' order, with the grader's points. Manual points are in the table only."""
    grades: dict[tuple[str, str], list[tuple[float, float, list[str]]]] = {}
    for student, assignment in course.graded:
        grade = record.load(course.record(student, assignment))
        for name in dict.fromkeys(line.cell for line in grade.lines) if grade else ():
            lines = [line for line in grade.lines if line.cell == name]
            mistakes = [f"{line.name}: {line.message}" for line in lines if line.points < line.max]
            points, max_points = sum(line.points for line in lines), sum(line.max for line in lines)
            grades.setdefault((assignment, name), []).append((points, max_points, mistakes))
    made = []
    for (assignment, name), rows in sorted(grades.items()):
        points, max_points, mistakes = zip(*rows, strict=True)
        made.append(Cell(assignment, name, max(max_points), list(points), _most_common(mistakes)))
    return made


def _most_common(mistakes: Sequence[list[str]]) -> list[tuple[str, int]]:
    """The lines that cost the most students points, each shown by its most common message, with a count."""
    counts = Counter(one_line(text.partition(": ")[0]) for texts in mistakes for text in texts)
    messages = Counter(one_line(text) for texts in mistakes for text in texts)
    examples = {
        name: max((message for message in messages if message.startswith(f"{name}: ")), key=messages.get)
        for name in counts
    }
    return [(examples[name][:MAX_MISTAKE], count) for name, count in counts.most_common(MAX_MISTAKES)]


def looks(course: Course) -> dict[str, list[str]]:
    """The lines of programs that are worth a look, by student and assignment."""
    grades = {(student, name): record.load(course.record(student, name)) for student, name in course.graded}
    return {
        f"{student}, {name}": list(map(one_line, grade.worth_a_look))
        for (student, name), grade in sorted(grades.items()) if grade and grade.worth_a_look
    }  # fmt: skip


def page(cells: list[Cell], looks: dict[str, list[str]]) -> str:
    """The summary as one HTML page."""
    shown = [(cell, _in_words(cell), _picture(cell)) for cell in cells]
    return template("summary.html").render(cells=shown, looks=looks)


def _in_words(cell: Cell) -> str:
    full = sum(points == cell.max for points in cell.points)
    mean = f"mean {statistics.mean(cell.points):.2f} of {cell.max:g} points"
    return f"{len(cell.points)} graded, {mean}, {full} with all points."


def _picture(cell: Cell) -> Markup:
    """A histogram of the students' points, as a picture inside the page."""
    figure = Figure(figsize=(4.2, 1.7), layout="constrained")
    ax = figure.subplots()
    ax.hist(cell.points, bins=BINS, range=(0, cell.max), color="#0b3c5d", edgecolor="white")
    ax.set(xlabel="points", ylabel="learners", xlim=(0, cell.max))
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    alt = Markup.escape(f"Distribution of the points of {cell.name}: {_in_words(cell)}")
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(
        alt, base64.b64encode(content.getvalue()).decode()
    )
