"""Runs the four-worker programs of a class, each once, with the batch's slots and journal."""

import argparse
import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from grader.batch import dask_cluster, grade_batch
from grader.classroom.collecting.student_submission import Handed
from grader.classroom.course import Course, CourseError
from grader.sandbox.run_paths import RunPaths


@dataclass(frozen=True)
class Graded:
    """A harness report: what report.json holds, and the page that shows it."""

    report: dict
    page: str


def run(
    course: Course, handed: list[Handed], profile: str, scheduler: str | None, force: bool, console: Console
) -> dict[str, Graded]:
    """The reports by student, of those who handed in a program; without whom the grader itself failed.

    What was run before is not run again, unless `force`. Raises CourseError if nothing can be run at all.
    """
    programs = {one.student: one.program for one in handed if one.program}
    if not programs:
        return {}
    # A journal for each profile and state of the grader.
    output = course.harness / f"{profile}-{dask_cluster.GRADER[:12]}"
    with _entries(programs) as entries:
        output.mkdir(parents=True, exist_ok=True)
        args = argparse.Namespace(
            path=entries, output=output, profile=profile, key=course.key, seed=0, scheduler=scheduler, no_sandbox=False
        )
        status = grade_batch.run(args, console, again=force)
        if status == 130:
            raise KeyboardInterrupt
        if status == 2:
            raise CourseError("the four-worker programs could not be run: see the line above")
        results = json.loads((output / "results.json").read_text())["results"]
        return {result["name"]: _read(output / result["folder"]) for result in results}


@contextlib.contextmanager
def _entries(programs: dict[str, dict[str, bytes]]) -> Iterator[Path]:
    """A folder with a folder for each program, as a batch takes them."""
    with tempfile.TemporaryDirectory(prefix="grader-programs-") as root:
        for student, files in programs.items():
            for name, content in files.items():
                path = Path(root, student, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        yield Path(root)


def _read(folder: Path) -> Graded:
    place = RunPaths(folder)
    page = place.page.read_text(encoding="utf-8") if place.page.exists() else ""
    return Graded(json.loads(place.report.read_text()), page)
