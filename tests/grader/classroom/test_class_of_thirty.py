"""These tests take minutes: a class of thirty is graded, and autograding is killed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.publishing.export import export
from grader.classroom.publishing.feedback import release_feedback
from tests.grader.classroom.test_class import in_gradebook, points
from tests.support import synthetic_class

pytestmark = pytest.mark.slow


def test_a_class_of_thirty_is_graded_as_expected(tmp_path: Path):
    """Hostile submissions are among them. Each grade is as expected, and the gradebook agrees."""
    course = synthetic_class.make(tmp_path / "work", len(synthetic_class.LEARNERS))
    console = Console(width=200)
    options = AutogradeOptions(profile=synthetic_class.PROFILE)
    assert autograde(course, options, console).failures == {}
    assert synthetic_class.show(course, len(synthetic_class.LEARNERS), console) == []
    assert release_feedback(course, console).failures == []
    export(course)
    for student, assignment in course.graded:
        assert in_gradebook(course, student, assignment)["score"] == pytest.approx(
            points(course, student, assignment), abs=0.01
        )
    assert len(course.graded) == 3 * len(synthetic_class.LEARNERS)


def test_killed_autograding_continues(tmp_path: Path):
    course, name = synthetic_class.make(tmp_path / "work", 3), synthetic_class.NOTEBOOKS[1]
    line = [sys.executable, "-m", "grader", "autograde", "--course", str(course.root), "--assignment", name]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    first = course.record(synthetic_class.name(0), name)
    until = time.monotonic() + 120
    while not first.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert first.exists()
    assert not course.record(synthetic_class.name(2), name).exists()
    before = first.read_bytes()
    assert subprocess.run(line, capture_output=True, check=False).returncode == 0
    assert first.read_bytes() == before
    assert [synthetic_class.differences(course, number, name) for number in range(3)] == [[], [], []]
