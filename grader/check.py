"""One submission from source to report: prepare its data, launch it, gather the evidence, judge."""

import contextlib
import hashlib
import shutil
from pathlib import Path

import torch
from rich.console import Console

from cifar import download
from grader.common import untrusted
from grader.common.contract import WORKERS, Profile
from grader.grading import checkpoint, grade
from grader.grading.evidence import Evidence
from grader.report import html_report
from grader.run import launch, rekeyed_data, worker_log
from grader.run.watchdog import Watch
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import Folders
from grader.submission import intake


def check(
    submission: Path, root: Path, profile: Profile, key: str, seed: int, isolate: Isolation, console: Console,
    name: str = "",
) -> grade.Report:  # fmt: skip
    """Grade `submission` in the folder `root`, where it replaces an earlier check's files, and write `report.json` and
    `report.html`.

    Both call it by `name`, or else by its path. `isolate` is isolation.sandbox, or isolation.trusted for one's own
    code. Raises intake.SubmissionError if the submission cannot be launched at all, isolation.IsolationError if the
    sandbox cannot be had, FileExistsError where `root` holds files of its own under the names of a check's.
    """
    folders = Folders(root)
    if any(submission.resolve().is_relative_to(part.resolve()) for part in folders.parts):
        raise intake.SubmissionError(f"{submission} is a copy that this check would replace: name what you wrote")
    folders.clear()
    intake.take(submission, folders.source)
    data = rekeyed_data.rekey(download.fetch(), key, profile.train_images, profile.test_images)
    rekeyed_data.write_folder(data, folders.data)
    with Watch(profile, console) as watch:
        run = launch.run(folders, profile, seed, isolate, watch)
    evidence = gather(folders, profile, run, data, isolate)
    shutil.rmtree(folders.data)
    record = {
        "profile": vars(profile), "seed": seed, "key_sha256": hashlib.sha256(key.encode()).hexdigest(),
        "seconds": run.seconds, "versions": grade.versions(),
        "source_sha256": source_hash(folders.source), "cpu_seconds": run.outside.cpu_seconds,
        "secret_accuracy": evidence.checkpoint.secret if evidence.checkpoint else None,
    }  # fmt: skip
    result = grade.judge(evidence, name or str(submission), record)
    grade.write_json(result, folders.report)
    html_report.write(result, evidence, folders.page)
    return result


def gather(
    folders: Folders, profile: Profile, run: launch.Run, data: rekeyed_data.Rekeyed, isolate: Isolation
) -> Evidence:
    """Read and measure what a run left in `folders`."""
    metrics, metrics_error, measured, measured_error = [], "", None, ""
    try:
        metrics = checkpoint.read_metrics(folders.output / "metrics.jsonl")
    except untrusted.UnreadableError as error:
        metrics_error = str(error)
    try:
        measured = checkpoint.measure(folders.output / "model.pt", data, isolate)
    except untrusted.UnreadableError as error:
        measured_error = str(error)
    timeline = b""
    with contextlib.suppress(untrusted.UnreadableError):
        timeline = untrusted.read(folders.timeline, launch.MAX_TIMELINE_BYTES)
    return Evidence(
        profile, run, [worker_log.read_worker(folders.lines(rank)) for rank in range(WORKERS)],
        folders.log.read_text(errors="replace"), metrics, metrics_error, measured, measured_error,
        len(data.visible), torch.cuda.device_count(), timeline,
    )  # fmt: skip


def source_hash(source: Path) -> str:
    """One hash for all of a submission's files, names included."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(source)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()
