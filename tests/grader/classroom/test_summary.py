"""The class at a glance counts who met each line, and says what stands out."""

import pytest

from grader.classroom.grading.record import Line, Record
from grader.classroom.publishing import summary
from grader.classroom.publishing.summary import Grades, LineCount

STUDENTS = 12


def graded(points: dict[str, float], attempt: int = 1) -> Record:
    """Return the grade of an assignment whose cells have one line of two points each, and one more line."""
    lines = [
        Line(cell=name, name="the line", points=own, max=2, message="" if own == 2 else "This is what to change.")
        for name, own in points.items()
    ]
    lines += [Line(cell=name, name="another line", points=1, max=1, message="") for name in points]
    common = {"source": "", "profile": "fast", "problems": [], "passed": None, "graded": "", "seconds": 3.0}
    return Record(lines=lines, attempt=attempt, counted=attempt, **common)


@pytest.fixture
def grades() -> Grades:
    """The better half solves "hard", everybody solves "easy", nobody "absurd", and "upside_down" is for the others."""
    halves = [number >= STUDENTS // 2 for number in range(STUDENTS)]
    return {
        (f"learner-{number:02}", "01_lesson"): graded(
            {"easy": 2, "hard": 2 * good, "also_hard": 2 * good, "absurd": 0, "upside_down": 1 - good}, 1 + good
        )
        for number, good in enumerate(halves)
    }


def test_the_met_lines_of_each_cell_are_counted(grades: Grades):
    cells = {cell.name: cell for cell in summary.cells(grades)}
    assert cells["hard"].lines == [LineCount("the line", 6, 12), LineCount("another line", 12, 12)]
    assert (cells["hard"].max, cells["hard"].full, cells["easy"].full, cells["absurd"].full) == (3, 6, 12, 0)
    assert cells["hard"].mistakes == [
        ("the line: This is what to change.", [f"learner-{number:02}" for number in range(6)])
    ]
    assert sorted(cells["hard"].attempts) == [1] * 6 + [2] * 6


def test_what_stands_out_is_said(grades: Grades):
    nobody, everybody, best, weak = summary.remarks(summary.cells(grades))
    assert nobody == "Nobody has all points in absurd, upside_down."
    assert everybody == "Everybody has all points in easy."
    assert "hard separates the class best" in best and "correlation 1.00" in best
    assert weak == "Look at upside_down (-1.00): who is good elsewhere is not better there."


def test_a_small_class_has_no_correlations(grades: Grades):
    few = dict(list(grades.items())[: summary.MIN_STUDENTS - 1])
    assert all(cell.separates is None for cell in summary.cells(few))
    assert "With 10 learners or more" in summary.remarks(summary.cells(few))[-1]


def test_the_page_shows_counts_attempts_and_time(grades: Grades):
    text = summary.page(grades)
    assert "12 learners, 12 graded submissions." in text
    assert '<td class="count">6 of 12</td>' in text
    assert "6 handed in more than once, at most 2 times. Grading took 3 s (median)." in text
    assert "6 learners: the line: This is what to change.<br><small>learner-00, learner-01, " in text
