"""The tests share a small class of six made-up learners, which is graded once."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from grader.classroom.course import Course
from grader.classroom.grading import record
from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.publishing.export import export
from grader.classroom.publishing.feedback import release_feedback
from tests.support import synthetic_class

STUDENTS = 6


@dataclass(frozen=True)
class Graded:
    """This is the course, the submissions on which the grader failed, and what was printed."""

    course: Course
    failures: dict[str, str]
    output: str


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Grade six learners' submissions into a new gradebook, release their feedback, and export the tables."""
    course = synthetic_class.make(tmp_path_factory.mktemp("class") / "work", STUDENTS)
    console = Console(record=True, width=200)
    result = autograde(course, AutogradeOptions(profile=synthetic_class.PROFILE), console)
    assert release_feedback(course, console).failures == []
    export(course)
    return Graded(course, result.failures, console.export_text())


def copy(graded: Graded, target: Path) -> Course:
    """Return the graded course for a test that changes it."""
    shutil.copytree(graded.course.root, target, ignore=shutil.ignore_patterns("harness"))
    return Course(target)


def points(course: Course, student: str, assignment: str) -> float:
    """Return the points that the grader gave."""
    return record.load(course.record(student, assignment)).points
