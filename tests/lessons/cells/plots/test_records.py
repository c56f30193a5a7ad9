"""The figure of the records of ImageNet training has the numbers of the table in lesson 09."""

import pytest

from grader.notebooks.build import SOLUTIONS
from lessons.cells.plots.records import RECORDS


def test_the_records_of_the_figure_are_those_of_the_lessons_table():
    text = (SOLUTIONS / "09_beyond_one_machine.py").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if "arXiv:" in line and line.startswith("# |")]
    assert [int(row[2].split()[0].replace(",", "")) for row in rows] == [processors for _, processors, _ in RECORDS]
    units = {"days": 24 * 60, "hour": 60, "minutes": 1, "seconds": 1 / 60}
    times = [float(number) * units[unit] for number, unit in (row[4].split() for row in rows)]
    assert times == pytest.approx([minutes for *_, minutes in RECORDS])
