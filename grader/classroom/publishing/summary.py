"""The class at a glance: one page for the instructor, with the lines that learners meet and the mistakes they make."""

import statistics
from collections import Counter
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from cifar.support import palette
from grader.classroom.course import Course
from grader.classroom.grading import record
from grader.classroom.grading.record import FOUR_WORKERS, Record
from grader.classroom.inline_picture import inline_picture
from grader.classroom.templates import template
from grader.common.text import one_line

MAX_MISTAKES = 3  # shown per cell: those that cost the most students points
MAX_MISTAKE = 200  # characters of a mistake
BINS = 10  # of a histogram
MIN_STUDENTS = 10  # for a correlation between cells; fewer say little
Grades = dict[tuple[str, str], Record]  # by student and assignment


@dataclass(frozen=True)
class LineCount:
    """How many of the graded students have all points of one line."""

    name: str
    met: int
    graded: int


@dataclass(frozen=True)
class Cell:
    """A graded cell over the class.

    `points` holds the points of all who have a grade there. `mistakes` holds what was wrong, and for which students.
    `attempts` and `seconds` of grading are those of the assignment. `separates` is the correlation of the points here
    with the points in all other cells (the item-rest correlation of test theory), or None if it cannot be computed.
    """

    assignment: str
    name: str
    max: float
    points: list[float]
    lines: list[LineCount]
    mistakes: list[tuple[str, list[str]]]
    attempts: list[int]
    seconds: list[float]
    separates: float | None

    @property
    def full(self) -> int:
        """How many students have all points."""
        return sum(points == self.max for points in self.points)


def grades(course: Course) -> Grades:
    """The records of all graded submissions."""
    found = {(student, name): record.load(course.record(student, name)) for student, name in course.graded}
    return {key: grade for key, grade in sorted(found.items()) if grade}


def cells(grades: Grades) -> list[Cell]:
    """All graded cells in the lessons' order, with the grader's points. Manual points are in the table only."""
    names = sorted({(assignment, line.cell) for (_, assignment), grade in grades.items() for line in grade.lines})
    totals: Counter[str] = Counter()
    for (student, _), grade in grades.items():
        totals[student] += sum(line.points for line in grade.lines)
    return [_cell(assignment, name, grades, totals) for assignment, name in names]


def _cell(assignment: str, name: str, grades: Grades, totals: Counter[str]) -> Cell:
    own = {student: grade for (student, which), grade in grades.items() if which == assignment}
    lines = {student: [line for line in grade.lines if line.cell == name] for student, grade in own.items()}
    mistakes = {
        student: [f"{line.name}: {line.message}" for line in found if line.points < line.max]
        for student, found in lines.items()
    }
    points = {student: round(sum(line.points for line in found), 2) for student, found in lines.items()}
    rest = [round(totals[student] - points[student], 2) for student in own]
    return Cell(
        assignment, name, max=max(sum(line.max for line in found) for found in lines.values()),
        points=list(points.values()), lines=_line_counts(list(lines.values())), mistakes=_most_common(mistakes),
        attempts=[grade.attempt for grade in own.values()], seconds=[grade.seconds for grade in own.values()],
        separates=_correlation(list(points.values()), rest),
    )  # fmt: skip


def _line_counts(found: list[list[record.Line]]) -> list[LineCount]:
    """One count for each line that earns points. A student without an answer has met none of them."""
    most = max(found, key=len)
    names = [line.name for line in most if line.max]
    met = Counter(line.name for lines in found for line in lines if line.max and line.points == line.max)
    return [LineCount(name, met[name], len(found)) for name in names]


def _correlation(points: list[float], rest: list[float]) -> float | None:
    if len(points) < MIN_STUDENTS or np.ptp(points) == 0 or np.ptp(rest) == 0:
        return None
    return float(np.corrcoef(points, rest)[0, 1])


def _most_common(mistakes: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    """The lines that cost the most students points, each shown by its most common message, with the students."""
    students: dict[str, list[str]] = {}
    messages = Counter(one_line(text) for texts in mistakes.values() for text in texts)
    for student, texts in mistakes.items():
        for name in dict.fromkeys(one_line(text.partition(": ")[0]) for text in texts):
            students.setdefault(name, []).append(student)
    common = sorted(students, key=lambda name: -len(students[name]))[:MAX_MISTAKES]
    examples = {
        name: max((message for message in messages if message.startswith(f"{name}: ")), key=messages.get)
        for name in common
    }
    return [(examples[name][:MAX_MISTAKE], students[name]) for name in common]


def looks(grades: Grades) -> dict[str, list[str]]:
    """The lines of programs that are worth a look, by student and assignment."""
    return {
        f"{student}, {name}": list(map(one_line, grade.worth_a_look))
        for (student, name), grade in grades.items()
        if grade.worth_a_look
    }


def remarks(cells: list[Cell]) -> list[str]:
    """What stands out: the cells that nobody or everybody has solved, and the one that separates the class best."""
    told = []
    if nobody := [cell.name for cell in cells if not cell.full]:
        told.append(f"Nobody has all points in {', '.join(nobody)}.")
    if everybody := [cell.name for cell in cells if cell.full == len(cell.points)]:
        told.append(f"Everybody has all points in {', '.join(everybody)}.")
    known = [cell for cell in cells if cell.separates is not None]
    if positive := [cell for cell in known if cell.separates > 0]:
        best = max(positive, key=lambda cell: cell.separates)
        told.append(
            f"{best.name} separates the class best: who has its points has many points elsewhere "
            f"(correlation {best.separates:.2f})."
        )
    if weak := [f"{cell.name} ({cell.separates:.2f})" for cell in known if cell.separates <= 0]:
        told.append(f"Look at {', '.join(weak)}: who is good elsewhere is not better there.")
    if cells and not known:
        told.append(f"With {MIN_STUDENTS} learners or more, this page also says which exercise separates the class.")
    return told


def page(grades: Grades) -> str:
    """The summary as one HTML page."""
    found = cells(grades)
    shown = [(cell, _in_words(cell), _picture(cell)) for cell in found]
    students = len({student for student, _ in grades})
    return template("summary.html").render(
        cells=shown, looks=looks(grades), remarks=remarks(found), students=students, submissions=len(grades)
    )


def _in_words(cell: Cell) -> str:
    mean = f"mean {statistics.mean(cell.points):.2f} of {cell.max:g} points"
    several = sum(attempt > 1 for attempt in cell.attempts)
    attempts = (
        f"{several} handed in more than once, at most {max(cell.attempts)} times" if several else "One attempt each"
    )
    separates = "" if cell.separates is None else f" Correlation with the points elsewhere: {cell.separates:.2f}."
    time = "" if cell.name == FOUR_WORKERS else f" Grading took {statistics.median(cell.seconds):.0f} s (median)."
    return f"{len(cell.points)} graded, {mean}, {cell.full} with all points. {attempts}.{time}{separates}"


def _picture(cell: Cell) -> Markup:
    """A histogram of the students' points, as a picture inside the page."""
    figure = Figure(figsize=(4.2, 1.7), layout="constrained")
    ax = figure.subplots()
    ax.hist(cell.points, bins=BINS, range=(0, cell.max), color=palette.WORKERS[0].line, edgecolor="white")
    ax.set(xlabel="points", ylabel="learners", xlim=(0, cell.max))
    ax.yaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    return inline_picture(figure, f"Distribution of the points of {cell.name}: {_in_words(cell)}")
