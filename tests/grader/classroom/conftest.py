"""A small class that is graded once for all tests: six made-up learners, from nothing."""

from dataclasses import dataclass

import pytest
from rich.console import Console

from grader.classroom.course import Course
from grader.classroom.grading import autograde
from grader.classroom.publishing import export, feedback
from tests.support import synthetic_class

STUDENTS = 6


@dataclass(frozen=True)
class Graded:
    """The course, the exit status of autograding it, and what was printed meanwhile."""

    course: Course
    status: int
    said: str


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Six learners' submissions, graded into a new gradebook, with feedback released and the tables exported."""
    course = synthetic_class.make(tmp_path_factory.mktemp("class") / "work", STUDENTS)
    console = Console(record=True, width=200)
    status = autograde.run(synthetic_class.options(course), console)
    assert feedback.run(synthetic_class.options(course), console) == 0
    export.export(course)
    return Graded(course, status, console.export_text())
