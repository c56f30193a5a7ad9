"""Grades one submission. The check takes it in, runs it, gathers the evidence, judges it and writes the reports."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from grader.common.contract import Profile
from grader.grading import evidence, grade
from grader.grading.grade import Report, RunRecord
from grader.report import html_report, json_report
from grader.run import launch, rekeyed_data
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import RunPaths
from grader.submission import intake
from grader.submission.archives import SubmissionError
from grader.submission.worth_a_look import worth_a_look


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """These options say how a submission is graded.

    `profile` gives the size of the run. `key` is any text, and it re-keys the classes, the colours and the test images.
    `seed` is the seed that the submission is given. `isolation` is `Bubblewrap`, or `Unsandboxed` for your own code.
    `data` is a folder with data of your own, or None for CIFAR-10.
    """

    profile: Profile
    key: str = "public"
    seed: int = 0
    isolation: type[Isolation] = Bubblewrap
    data: Path | None = None


def check(submission: Path, output: Path, options: CheckOptions, console: Console, name: str = "") -> Report:
    """Grade `submission` in the folder `output`, and write `report.json` and `report.html` there.

    Files of an earlier check in `output` are replaced. The reports call the submission by `name`, or else by its path.
    Raises SubmissionError if the submission cannot be launched at all. Raises isolation.IsolationError if the sandbox
    cannot be set up. Raises rekeyed_data.DataError if the data of your own cannot be used. Raises FileExistsError if
    other files in `output` have the names of a check's files.
    """
    paths, profile = RunPaths(output), options.profile
    source = rekeyed_data.folder(options.data)
    _take_in(submission, paths)
    data = rekeyed_data.rekey(source, options.key, profile.train_images, profile.test_images)
    rekeyed_data.write_folder(data, paths.data)
    run = launch.run(paths, options.profile, options.seed, options.isolation, console)
    found = evidence.gather(paths, options.profile, run, data, options.isolation)
    shutil.rmtree(paths.data)
    report = grade.judge(found, name or str(submission), _record(options, paths, found))
    json_report.write(report, paths.report)
    html_report.write(report, found, paths.page)
    return report


def _take_in(submission: Path, paths: RunPaths) -> None:
    if any(submission.resolve().is_relative_to(part.resolve()) for part in paths.parts):
        raise SubmissionError(f"{submission} is a copy that this check would replace: name what you wrote")
    paths.clear()
    intake.take_in(submission, paths.source)


def _record(options: CheckOptions, paths: RunPaths, found: evidence.Evidence) -> RunRecord:
    return RunRecord(
        profile=vars(options.profile), seed=options.seed, key_sha256=hashlib.sha256(options.key.encode()).hexdigest(),
        seconds=found.run.seconds, versions=grade.versions(), source_sha256=intake.source_hash(paths.source),
        cpu_seconds=found.run.outside.cpu_seconds,
        secret_accuracy=found.checkpoint.secret if found.checkpoint else None, audit=found.audit,
        worth_a_look=worth_a_look(paths.source),
    )  # fmt: skip
