"""Runs the four-worker programs of a class as one batch, each program once."""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from grader.batch.dask_cluster import GRADER
from grader.batch.grade_batch import BatchOptions, grade_batch
from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course, CourseError
from grader.common.errors import GraderError
from grader.sandbox.run_paths import RunPaths


@dataclass(frozen=True)
class ProgramReport:
    """A harness report: the content of report.json, and the page that shows it or ""."""

    report: dict
    page: str


def run_programs(
    course: Course, submissions: list[StudentSubmission], profile: str, scheduler: str | None, force: bool,
    console: Console,
) -> dict[str, ProgramReport]:  # fmt: skip
    """Run the programs, and return the reports by student. A student is missing if the grader itself failed.

    A program that was run before is not run again, unless `force`. Raises CourseError if nothing can be run.
    """
    programs = {submission.student: submission.program for submission in submissions if submission.program}
    if not programs:
        return {}
    target, data = course.policy.program.target, course.policy.program.data
    own = "" if target is None else f"-target-{target:g}"
    own += "" if data is None else f"-data-{hashlib.sha256(data.encode()).hexdigest()[:8]}"
    output = course.harness / f"{profile}-{GRADER[:12]}{own}"  # one journal per kind of run and grader
    with _as_folders(programs) as folder:
        options = BatchOptions(
            submissions=folder, output=output, profile=profile, key=course.key, scheduler=scheduler, rerun=force,
            target=target, data=course.root / data if data else None,
        )  # fmt: skip
        try:
            result = grade_batch(options, console)
        except GraderError as error:
            raise CourseError(f"the four-worker programs could not be run: {error}") from None
    return {submission.name: _read_report(result.paths(submission)) for submission in result.results}


@contextlib.contextmanager
def _as_folders(programs: dict[str, dict[str, bytes]]) -> Iterator[Path]:
    """A temporary folder with one folder per program, as a batch expects it."""
    with tempfile.TemporaryDirectory(prefix="grader-programs-") as root:
        for student, files in programs.items():
            for name, content in files.items():
                path = Path(root, student, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        yield Path(root)


def _read_report(paths: RunPaths) -> ProgramReport:
    page = paths.page.read_text(encoding="utf-8") if paths.page.exists() else ""
    return ProgramReport(json.loads(paths.report.read_text()), page)
