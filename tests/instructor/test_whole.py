"""What takes minutes: a class of thirty, and autograding that is killed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from grader.instructor import autograde, export, feedback
from tests.instructor import made_up
from tests.instructor.test_class import in_gradebook, points

pytestmark = pytest.mark.slow


def test_a_class_of_thirty(tmp_path: Path):
    """Hostile ones, garbage and all: each as expected, and the books agree."""
    course = made_up.make(tmp_path / "work", len(made_up.LEARNERS))
    console = Console(width=200)
    assert autograde.run(made_up.options(course), console) == 0
    assert made_up.show(course, len(made_up.LEARNERS), console) == []
    assert feedback.run(made_up.options(course), console) == 0
    export.export(course)
    for student, assignment in course.graded:
        assert in_gradebook(course, student, assignment)["score"] == pytest.approx(
            points(course, student, assignment), abs=0.01
        )
    assert len(course.graded) == 3 * len(made_up.LEARNERS)


def test_autograding_goes_on_where_it_was_killed(tmp_path: Path):
    course, name = made_up.make(tmp_path / "work", 3), made_up.NOTEBOOKS[1]
    line = [sys.executable, "-m", "grader", "autograde", "--course", str(course.root), "--assignment", name]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    first = course.record(made_up.name(0), name)
    until = time.monotonic() + 120
    while not first.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert first.exists() and not course.record(made_up.name(2), name).exists()
    before = first.read_bytes()
    assert subprocess.run(line, capture_output=True, check=False).returncode == 0
    assert first.read_bytes() == before
    assert [made_up.differences(course, number, name) for number in range(3)] == [[], [], []]
