"""Grades a class. Every entry of a folder is one submission, which is graded in a slot and noted in the journal.

`grade_batch` writes `report.json` for each submission, `results.csv` and `results.json` into its output folder. If it
is killed, calling it again continues: a submission that has a result in the journal is not graded again.
"""

import contextlib
import json
import secrets
import statistics
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from distributed import Client
from filelock import FileLock, Timeout
from rich.console import Console
from rich.table import Table

from grader.batch import dask_cluster
from grader.batch.dask_cluster import Files, Outcome, Submission
from grader.batch.grade_submission import grade_submission, rejection
from grader.batch.journal import Journal, Result, Settings, read_key, remove_results
from grader.batch.names import plain_name, safe_name
from grader.batch.results_csv import write_results
from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError
from grader.common.progress_bar import counting
from grader.common.text import for_terminal, one_line
from grader.run import rekeyed_data
from grader.sandbox.run_paths import RunPaths
from grader.submission import intake
from grader.submission.archives import SubmissionError

JOURNAL = "journal.jsonl"
MAX_SUBMISSIONS = 1_000  # in one batch
MAX_MESSAGE = 300  # characters of a message in the results
MAX_NAME = 40  # characters of a name in the terminal, so that a table's row fits
LOCK_SECONDS = 5  # the processes of a batch that was killed end within that time
LONG_SECONDS = 90  # a longer estimate is shown in minutes


class BatchError(GraderError):
    """The batch cannot be run. The message is one line."""


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """What is graded, and how.

    `submissions`: a folder whose entries, folders or archives, are the submissions. `output`: the folder of the
    reports, the results and the journal. `profile`: the name of the runs' size. `key`: any text, which re-keys classes,
    colours and test images. None takes the journal's key, or draws a new one. `seed`: the seed that submissions are
    given. `scheduler`: the address of a Dask scheduler, or None to grade on this machine. `sandbox`: False runs the
    submissions with all rights of this user. `rerun`: whether submissions that have a result are graded again.
    `target`: the test accuracy that a submission must reach, 0 to 1, or None for that of the profile. `data`: a folder
    with data of your own, at the same path on each machine, or None for CIFAR-10.
    """

    submissions: Path
    output: Path
    profile: str
    key: str | None = None
    seed: int = 0
    scheduler: str | None = None
    sandbox: bool = True
    rerun: bool = False
    target: float | None = None
    data: Path | None = None


@dataclass(frozen=True)
class BatchResult:
    """What became of a batch. `failures` holds, by submission, why the grader itself failed: it has no result."""

    folder: Path
    results: list[Result]
    failures: dict[str, str]

    def paths(self, result: Result) -> RunPaths:
        """Where the report of a submission is."""
        return RunPaths(self.folder / result.folder)


def grade_batch(options: BatchOptions, console: Console) -> BatchResult:
    """Grade a class, print the results and write them. Raises GraderError if the batch cannot be run."""
    try:
        with _locked_output(options.submissions, options.output) as folder:
            if options.rerun:
                entries = options.submissions.iterdir()
                remove_results(folder / JOURNAL, {safe_name(entry.name) for entry in entries})
            return Batch(options, folder, console).grade()
    except OSError as error:
        raise BatchError(f"{error.filename or options.output}: {error.strerror or error}") from None


@contextlib.contextmanager
def _locked_output(submissions: Path, output: Path) -> Iterator[Path]:
    """Create the output folder if need be, and lock it. Raises BatchError if another batch is at work there."""
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
    """One class, from a folder of submissions to a table of results."""

    def __init__(self, options: BatchOptions, folder: Path, console: Console):
        self.options, self.folder, self.console = options, folder, console
        self.settings = _settings(options, folder / JOURNAL)
        self.results: list[Result] = []
        self.failures: dict[str, str] = {}  # by name: why the grader has no result

    def grade(self) -> BatchResult:
        """Grade what has no result yet. Raises GraderError for what concerns the batch as a whole."""
        entries = _entries(self.options.submissions)
        with Journal(self.folder / JOURNAL, self.settings) as self.journal:
            read = filter(None, map(self._read, entries))
            waiting = [submission for submission in read if not self._take_known_result(submission)]
            self._say(f"{len(self.results)} of {len(entries)} submissions have a result")
            if waiting:
                self._grade_all(waiting)
        self.results.sort(key=lambda result: (result.name, result.folder))
        write_results(self.results, self.settings, self.folder)
        self._print_results()
        return BatchResult(self.folder, self.results, self.failures)

    def _read(self, entry: Path) -> Submission | None:
        """Read an entry as a submission. An entry that is none gets a result at once, anew at every call."""
        name, folder = plain_name(entry.name), safe_name(entry.name)
        try:
            files = intake.read_files(entry)
        except SubmissionError as error:
            self._add_result(Submission(name, folder, "", {}), rejection(name, str(error)), 0.0)
            return None
        return Submission(name, folder, dask_cluster.hash_files(files), files)

    def _take_known_result(self, submission: Submission) -> bool:
        """Take the journal's result of a submission. False if there is none, or the files have changed since."""
        result = self.journal.results.get(submission.folder)
        if not result or result.source != submission.source:
            return False
        self.results.append(result)
        return True

    def _grade_all(self, waiting: list[Submission]) -> None:
        bar = counting(self.console)
        task, seconds = bar.add_task("grading", total=len(waiting)), []
        with self._cluster() as client, bar:
            if not dask_cluster.count_slots(client):
                self._say(f"no machine has joined yet; on each: python -m grader join {self.options.scheduler}")
            graded = dask_cluster.grade_all(client, waiting, self.settings, grade_submission)
            for number, (submission, outcome) in enumerate(graded, start=1):
                message = self._end(submission, outcome)
                seconds += [outcome.seconds] if outcome else []
                remaining = _remaining_time(
                    seconds, len(waiting) - number, sum(dask_cluster.count_slots(client).values())
                )
                bar.update(task, completed=number, description=f"grading{remaining}")
                name = for_terminal(submission.name, MAX_NAME)
                self._say(f"{number} of {len(waiting)}: {name}: {message}{remaining}")

    def _cluster(self) -> AbstractContextManager[Client]:
        if self.options.scheduler:
            return dask_cluster.remote_cluster(self.options.scheduler)
        # Without a sandbox the runs share the loopback, whose bytes are counted, so only one runs at a time.
        slots = dask_cluster.slots_of_this_machine(MAX_SUBMISSIONS if self.options.sandbox else 1)
        return dask_cluster.local_cluster(slots, self.folder / "work")

    def _end(self, submission: Submission, outcome: Outcome | None) -> str:
        """Note what became of a submission, and return it in words."""
        if outcome and outcome.failure:
            self.failures[submission.name] = outcome.failure
            return f"the grader failed, {for_terminal(outcome.failure, MAX_MESSAGE)}"
        if not outcome:
            reason = f"It ended the process that graded it {dask_cluster.TRIES} times, and is not tried again."
            outcome = Outcome(rejection(submission.name, reason), 0.0)
        result = self._add_result(submission, outcome.files, outcome.seconds)
        self.journal.add(result)
        return f"{result.points:g} points, {'passed' if result.passed else 'not passed'}"

    def _add_result(self, submission: Submission, files: Files, seconds: float) -> Result:
        """Write the files of a report, and add its result."""
        paths = RunPaths(self.folder / submission.folder)
        paths.root.mkdir(exist_ok=True)
        paths.page.unlink(missing_ok=True)  # an earlier page must not stand beside a report that has none
        for name, text in files.items():
            write_whole(paths.root / name, text)
        report = json.loads(files["report.json"])
        message = next((row["message"] for row in report["rows"] if row["message"]), "")
        result = Result(
            name=submission.name, source=submission.source, folder=submission.folder, points=report["points"],
            passed=report["passed"], lines={row["id"]: row["points"] for row in report["rows"] if row["max"]},
            seconds=round(seconds, 1), message=one_line(message, MAX_MESSAGE),
        )  # fmt: skip
        self.results.append(result)
        return result

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def _print_results(self) -> None:
        """Print the results as a table, and where they are."""
        table = Table("Submission", "Points", "Passed", "First thing to change")
        for result in self.results:
            passed = "[green]yes[/]" if result.passed else "[red]no[/]"
            name, message = for_terminal(result.name, MAX_NAME), for_terminal(result.message, 2 * MAX_NAME)
            table.add_row(name, f"{result.points:g}", passed, message)
        self.console.print(table)
        passes = sum(result.passed for result in self.results)
        self._say(f"{passes} of {len(self.results)} passed; results: {for_terminal(str(self.folder / 'results.csv'))}")
        for name, reason in self.failures.items():
            failure = f"{for_terminal(name, MAX_NAME)}: {for_terminal(reason, MAX_MESSAGE)}"
            self._say(f"no result yet, the same command tries again: {failure}")


def _entries(folder: Path) -> list[Path]:
    entries = sorted(folder.iterdir())
    if not 1 <= len(entries) <= MAX_SUBMISSIONS:
        raise BatchError(f"{folder} has {len(entries):,} entries: a batch takes 1 to {MAX_SUBMISSIONS:,} submissions")
    return entries


def _settings(options: BatchOptions, journal: Path) -> Settings:
    """The batch's settings. Without a key in the options, the key is the journal's, or a new one."""
    key = options.key if options.key is not None else read_key(journal) or secrets.token_hex(16)
    isolation = "sandbox" if options.sandbox else "no_sandbox"
    data = str(rekeyed_data.folder(options.data).resolve()) if options.data else None
    return Settings(options.profile, key, options.seed, isolation, dask_cluster.GRADER, options.target, data)


def _remaining_time(seconds: list[float], count: int, slots: int) -> str:
    """How long `count` more submissions will take, judged by the seconds of those before."""
    if not count or not seconds:
        return ""
    estimate = statistics.mean(seconds) * count / max(1, slots)
    return f"; about {estimate / 60:.0f} min left" if estimate > LONG_SECONDS else f"; about {estimate:.0f} s left"
