"""Grades a class: every entry of a folder is a submission, taken in, graded in a slot, noted in the journal.

`python -m grader batch FOLDER --output DIR` writes `DIR/<submission>/report.json`, `DIR/results.csv` and
`DIR/results.json`. Killed at any moment, the same command goes on: what the journal holds is not graded again.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import secrets
import statistics
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import torch
from distributed import Client
from filelock import FileLock, Timeout
from rich.console import Console
from rich.table import Table

from cifar.support.environment import cores
from grader.batch import dask_cluster
from grader.batch.dask_cluster import Files, Outcome, Slot, SlotError, Submission
from grader.batch.journal import Journal, Result, Settings, forget, key_of
from grader.batch.results_csv import write_results
from grader.check import CheckOptions, check
from grader.common import contract
from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError
from grader.common.progress_bar import counting
from grader.common.text import for_terminal, one_line
from grader.grading.grade import Report, Row
from grader.report import json_report
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.isolation import IsolationError
from grader.sandbox.run_paths import RunPaths
from grader.sandbox.unsandboxed import Unsandboxed
from grader.submission import intake
from grader.submission.archives import SubmissionError

JOURNAL = "journal.jsonl"
MOST = 1_000  # submissions
MAX_MESSAGE = 300  # characters of a message
MAX_NAME = 40  # characters of a name in the terminal
LOCK_SECONDS = 5  # the processes of a batch that was killed end within that time


class BatchError(GraderError):
    """The batch cannot be run; the message is one line."""


def run(
    args: argparse.Namespace, console: Console, grade: dask_cluster.Grade | None = None,
    machine: list[Slot] | None = None, again: bool = False,
) -> int:  # fmt: skip
    """Grade a class as the options say, `again` also what has a result. `grade` is `graded`, `machine` this machine's
    slots, unless given.

    Exit status: 0 if every entry has a result, passed or not; 1 if on some the grader itself failed; 2 if the batch
    cannot be run; 130 after an interrupt.
    """
    try:
        with _alone(args.path, args.output) as folder:
            if again:
                forget(folder / JOURNAL, {safe_name(entry.name) for entry in args.path.iterdir()})
            return Batch(args, folder, console, grade or graded, machine).run()
    except GraderError as error:
        told, status = str(error), 2
    except OSError as error:
        told, status = f"{error.filename or args.output}: {error.strerror or error}", 2
    except KeyboardInterrupt:
        told, status = "interrupted; the same command goes on where this one was", 130
    print(f"grader: {told}", file=sys.stderr)
    return status


@contextlib.contextmanager
def _alone(submissions: Path, output: Path) -> Iterator[Path]:
    """The output folder, made if need be, and locked. Raises BatchError if another batch is at work there."""
    folder = output.resolve()
    if not submissions.is_dir():
        raise BatchError(f"{submissions} is not a folder of submissions")
    if folder.is_relative_to(submissions.resolve()):
        raise BatchError(f"{output} lies in {submissions}, whose entries are submissions: use another --output")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "batch.lock", timeout=LOCK_SECONDS):
            yield folder
    except Timeout:
        raise BatchError(f"another batch is at work in {output}: wait for its end, or use another --output") from None


class Batch:
    """One class on its way from a folder of submissions to a table of results."""

    def __init__(
        self, args: argparse.Namespace, folder: Path, console: Console, grade: dask_cluster.Grade,
        machine: list[Slot] | None,
    ):  # fmt: skip
        self.args, self.folder, self.console, self.grade, self.machine = args, folder, console, grade, machine
        self.results: list[Result] = []
        self.failed: dict[str, str] = {}  # by name: why the grader has no result

    def run(self) -> int:
        """The exit status: see `run` above. What concerns the batch as a whole is raised."""
        entries = _entries(self.args.path)
        path = self.folder / JOURNAL
        settings = _settings(self.args, path)
        with Journal(path, settings) as self.journal:
            waiting = [one for one in map(self._take, entries) if one and not self._known(one)]
            self._say(f"{len(self.results)} of {len(entries)} submissions have a result")
            if waiting:
                self._grade_all(waiting, settings)
        self.results.sort(key=lambda result: (result.name, result.folder))
        write_results(self.results, settings, self.folder)
        self._show()
        return 1 if self.failed else 0

    def _take(self, entry: Path) -> Submission | None:
        """The entry as a submission. What cannot be one is a result at once; every command looks at it anew."""
        name, folder = plain_name(entry.name), safe_name(entry.name)
        try:
            files = intake.read_files(entry)
        except SubmissionError as error:
            self._keep(Submission(name, folder, "", {}), rejection(name, str(error)), 0.0)
            return None
        return Submission(name, folder, dask_cluster.hash_files(files), files)

    def _known(self, submission: Submission) -> bool:
        """Whether the journal has its result, which then is taken from there."""
        result = self.journal.results.get(submission.folder)
        if not result or result.source != submission.source:
            return False
        self.results.append(result)
        return True

    def _grade_all(self, waiting: list[Submission], settings: Settings) -> None:
        bar = counting(self.console)
        task, seconds = bar.add_task("grading", total=len(waiting)), []
        with self._cluster() as client, bar:
            if not dask_cluster.places(client):
                self._say(f"no machine has joined yet; on each: python -m grader join {self.args.scheduler}")
            graded = dask_cluster.grade_all(client, waiting, settings, self.grade)
            for number, (submission, outcome) in enumerate(graded, start=1):
                told = self._end(submission, outcome)
                seconds += [outcome.seconds] if outcome else []
                left = _estimate(seconds, len(waiting) - number, sum(dask_cluster.places(client).values()))
                bar.update(task, completed=number, description=f"grading{left}")
                self._say(f"{number} of {len(waiting)}: {for_terminal(submission.name, MAX_NAME)}: {told}{left}")

    def _cluster(self) -> AbstractContextManager[Client]:
        if self.args.scheduler:
            return dask_cluster.remote(self.args.scheduler)
        # Without a sandbox the runs share the loopback, whose bytes are counted: one run at a time.
        machine = self.machine or dask_cluster.of_this_machine(most=1 if self.args.no_sandbox else MOST)
        return dask_cluster.local(machine, self.folder / "work")

    def _end(self, submission: Submission, outcome: Outcome | None) -> str:
        """Note what became of a submission; in words."""
        if outcome and outcome.failure:
            self.failed[submission.name] = outcome.failure
            return f"the grader failed, {for_terminal(outcome.failure, MAX_MESSAGE)}"
        if not outcome:
            reason = f"It ended the process that graded it {dask_cluster.TRIES} times, and is not tried again."
            outcome = Outcome(rejection(submission.name, reason), 0.0)
        result = self._keep(submission, outcome.files, outcome.seconds)
        self.journal.add(result)
        return f"{result.points:g} points, {'passed' if result.passed else 'not passed'}"

    def _keep(self, submission: Submission, files: Files, seconds: float) -> Result:
        """Write the files of a report, and make it a result."""
        place = RunPaths(self.folder / submission.folder)
        place.root.mkdir(exist_ok=True)
        place.page.unlink(missing_ok=True)  # an earlier one must not stand beside a report that has none
        for name, text in files.items():
            write_whole(place.root / name, text)
        judged = json.loads(files["report.json"])
        lines = {row["id"]: row["points"] for row in judged["rows"] if row["max"]}
        message = next((row["message"] for row in judged["rows"] if row["message"]), "")
        self.results.append(
            Result(
                submission.name, submission.source, submission.folder, judged["points"], judged["passed"], lines,
                round(seconds, 1), one_line(message, MAX_MESSAGE),
            )
        )  # fmt: skip
        return self.results[-1]

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def _show(self) -> None:
        """Print the results as a table, and where they are."""
        table = Table("Submission", "Points", "Passed", "First thing to change")
        for result in self.results:
            passed = "[green]yes[/]" if result.passed else "[red]no[/]"
            name, message = for_terminal(result.name, MAX_NAME), for_terminal(result.message, 2 * MAX_NAME)
            table.add_row(name, f"{result.points:g}", passed, message)
        self.console.print(table)
        passed = sum(result.passed for result in self.results)
        self._say(f"{passed} of {len(self.results)} passed; results: {for_terminal(str(self.folder / 'results.csv'))}")
        for name, reason in self.failed.items():
            failure = f"{for_terminal(name, MAX_NAME)}: {for_terminal(reason, MAX_MESSAGE)}"
            self._say(f"no result yet, the same command tries again: {failure}")


def graded(submission: Submission, settings: Settings, folder: Path) -> Files:
    """Grade one submission with `check` in this process; the report's files. Raises SlotError without a sandbox."""
    torch.set_num_threads(cores())  # Dask starts its processes with one
    source, root = folder / "submission", RunPaths(folder / "run")
    for name, content in submission.files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    isolation = {"sandbox": Bubblewrap, "no_sandbox": Unsandboxed}[settings.isolation]
    profile = contract.load(settings.profile)
    options = CheckOptions(profile=profile, key=settings.key, seed=settings.seed, isolation=isolation)
    try:
        check(source, root.root, options, Console(quiet=True), submission.name)
    except SubmissionError as error:
        return rejection(submission.name, str(error))
    except IsolationError as error:
        raise SlotError(str(error)) from None
    return {path.name: path.read_text() for path in (root.report, root.page) if path.exists()}


def rejection(name: str, reason: str) -> Files:
    """The report of a submission that was not graded: 0 points, and why."""
    row = Row(
        id="submission", status="unmet", points=0, max=0, asks="A submission that can be graded", seen="",
        message=reason,
    )  # fmt: skip
    report = Report(name, passed=False, points=0, rows=[row], isolation="nothing was run", record=None)
    return {"report.json": json_report.text(report)}


def _entries(folder: Path) -> list[Path]:
    entries = sorted(folder.iterdir())
    if not 1 <= len(entries) <= MOST:
        raise BatchError(f"{folder} has {len(entries):,} entries: a batch takes 1 to {MOST:,} submissions")
    return entries


def _settings(args: argparse.Namespace, path: Path) -> Settings:
    """The batch's settings; a key that is not given is the one that the journal at `path` has, or a new one."""
    key = args.key if args.key is not None else key_of(path) or secrets.token_hex(16)
    return Settings(args.profile, key, args.seed, "no_sandbox" if args.no_sandbox else "sandbox", dask_cluster.GRADER)


def _estimate(seconds: list[float], left: int, at_once: int) -> str:
    """How long `left` submissions will take, judged by those before."""
    if not left or not seconds:
        return ""
    rest = statistics.mean(seconds) * left / max(1, at_once)
    return f"; about {rest / 60:.0f} min left" if rest > 90 else f"; about {rest:.0f} s left"


def plain_name(name: str) -> str:
    """A file's name as text that every program can take; bytes that are no UTF-8 are shown as such."""
    return os.fsencode(name).decode(errors="backslashreplace")


def safe_name(name: str) -> str:
    """A folder name for an entry: what of its name is harmless, and a hash that no other name has."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = re.sub("[^a-z0-9]+", "-", letters)[:MAX_NAME].strip("-") or "submission"
    return f"{words}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
