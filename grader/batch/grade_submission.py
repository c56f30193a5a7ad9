"""Grades one submission of a batch, in the process of a slot."""

from pathlib import Path

import torch
from rich.console import Console

from cifar.support.environment import cores
from grader.batch.dask_cluster import Files, SlotError, Submission
from grader.batch.journal import Settings
from grader.check import CheckOptions, check
from grader.common import contract
from grader.grading.grade import Report, Row
from grader.report import json_report
from grader.run.rekeyed_data import DataError
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.isolation import IsolationError
from grader.sandbox.run_paths import RunPaths
from grader.sandbox.unsandboxed import Unsandboxed
from grader.submission.archives import SubmissionError


def grade_submission(submission: Submission, settings: Settings, folder: Path) -> Files:
    """Grade one submission with `check` in this process, and return the report's files.

    `folder` is an empty folder to work in. Raises SlotError if this machine cannot provide a sandbox or the data.
    """
    torch.set_num_threads(cores())  # Dask starts its processes with one thread
    source, paths = folder / "submission", RunPaths(folder / "run")
    for name, content in submission.files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    isolation = {"sandbox": Bubblewrap, "no_sandbox": Unsandboxed}[settings.isolation]
    profile = contract.load(settings.profile, settings.target)
    data = Path(settings.data) if settings.data else None
    options = CheckOptions(profile=profile, key=settings.key, seed=settings.seed, isolation=isolation, data=data)
    try:
        check(source, paths.root, options, Console(quiet=True), submission.name)
    except SubmissionError as error:
        return rejection(submission.name, str(error))
    except (IsolationError, DataError) as error:
        raise SlotError(str(error)) from None
    return {path.name: path.read_text() for path in (paths.report, paths.page) if path.exists()}


def rejection(name: str, reason: str) -> Files:
    """The report of a submission that was not graded. It has 0 points and gives the reason."""
    row = Row(
        id="submission", status="unmet", points=0, max=0, asks="A submission that can be graded", seen="",
        message=reason,
    )  # fmt: skip
    report = Report(name, passed=False, points=0, rows=[row], isolation="nothing was run", record=None)
    return {"report.json": json_report.text(report)}
