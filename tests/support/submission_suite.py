"""Runs every submission of tests/submissions through the grader and compares what it answers with what it must answer.

python -m tests.support.submission_suite [--quick] [--only NAME ...]

It continues where it stopped. A submission is not run again if it has a result of the same source and the same grader.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import io
import json
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.experiment import results
from grader.check import CheckOptions, check
from grader.common import contract
from grader.grading.grade import Report
from grader.grading.rubric import RUBRIC
from grader.report import terminal
from grader.sandbox import resource_limits
from grader.submission.archives import SubmissionError
from grader.submission.intake import source_hash

REPOSITORY = Path(__file__).resolve().parents[2]
SUBMISSIONS = REPOSITORY / "tests" / "submissions"
REFERENCE = "solutions/assignment"
RESULT = REPOSITORY / "runs" / "submissions.json"
KEY, SEED = "the matrix's key", 1
FULL, FAST = contract.load("full"), contract.load("fast")
BRIEF = dataclasses.replace(
    FAST, name="brief", epochs=2, batch_size=125, train_images=2000, test_images=2000, target=0.0
)
LINES = tuple(line.id for line in RUBRIC)
MARK = "course-hostile"  # hostile submissions try to leave files, and each name has this mark
PATIENCE_SECONDS = 10  # seconds; the kernel removes what a run left within this time


@dataclass(frozen=True)
class Submission:
    """This is a submission, and what the grader must answer. The file expected.toml explains the fields."""

    kind: str
    name: str
    rows: list[int]
    passes: bool | None = None
    lost: list[str] = field(default_factory=list)
    may_lose: list[str] = field(default_factory=list)
    says: list[str] = field(default_factory=list)
    refused: str = ""
    log_has: list[str] = field(default_factory=list)
    log_lacks: list[str] = field(default_factory=list)
    edits: list[list[str]] | None = None
    base: str = REFERENCE
    entry: str = "train.py"
    brief: bool = False
    full: bool = False
    quick: bool = False

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def profile(self) -> contract.Profile:
        """Return the profile on which it is graded."""
        return FULL if self.full else BRIEF if self.brief else FAST

    def write(self, folder: Path) -> None:
        """Write its files. Raises ValueError unless the text that an edit replaces occurs exactly once."""
        source = SUBMISSIONS / self.id if self.edits is None else REPOSITORY / self.base
        folder.mkdir(parents=True)
        for path in filter(Path.is_file, source.iterdir()):
            name = self.entry if path.name == "train.py" else path.name
            (folder / name).write_bytes(path.read_bytes())
        if self.edits:
            text = (folder / self.entry).read_text()
            for before, after in self.edits:
                if text.count(before) != 1:
                    raise ValueError(f"{self.id}: {before!r} stands {text.count(before)} times in {self.base}")
                text = text.replace(before, after)
            (folder / self.entry).write_text(text)


def submissions() -> list[Submission]:
    """Return all submissions in the order of expected.toml."""
    kinds = tomllib.loads((SUBMISSIONS / "expected.toml").read_text())
    return [Submission(kind, name, **entry) for kind, named in kinds.items() for name, entry in named.items()]


@dataclass(frozen=True)
class Outcome:
    """This is the outcome of one run.

    It has the rubric's `rows`, or `refused` says why the submission was refused. `leftovers` is what the run left.
    `forbidden` is what its output must not have but has. `unsaid` is what its output must have but lacks.
    """

    passed: bool
    points: float
    rows: list[dict]
    refused: str
    forbidden: list[str]
    leftovers: list[str]
    seconds: float
    source_sha256: str
    unsaid: list[str] = field(default_factory=list)


def run(submission: Submission, root: Path, key: str = KEY, seed: int = SEED) -> Outcome:
    """Grade a submission in the sandbox, on its profile, in the new folder `root`. Look for what it left."""
    submission.write(root / "in")
    before, started = world(), time.monotonic()
    refused, judged = "", None
    with private_temporary_folder(root / "tmp"):
        try:
            quiet = Console(quiet=True)
            options = CheckOptions(profile=submission.profile, key=key, seed=seed)
            judged = check(root / "in", root / "out", options, quiet)
        except SubmissionError as error:
            refused = str(error)
    seconds = time.monotonic() - started
    leftovers = [*left(before), *map(str, (root / "tmp").glob("grader-*")), *processes_naming(root)]
    log = (root / "out" / "output.log").read_text(errors="replace") if judged else ""
    forbidden = [line for line in log.splitlines() if any(word in line for word in submission.log_lacks)][:5]
    unsaid = [text for text in submission.log_has if text not in log]
    rows = [asdict(row) for row in judged.rows] if judged else []
    if judged and not plain(shown(judged)):
        leftovers.append("control characters in the terminal's report")
    points, passed = (judged.points, judged.passed) if judged else (0.0, False)
    return Outcome(
        passed, points, rows, refused, forbidden, leftovers, round(seconds, 1), source_hash(root / "in"), unsaid
    )  # fmt: skip


@contextlib.contextmanager
def private_temporary_folder(folder: Path) -> Iterator[None]:
    """Let the grader make its temporary files in `folder`, so that other programs' files are not mistaken for them."""
    folder.mkdir()
    usual, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = usual


def world() -> set[str]:
    """Return what a run could leave on this machine: our control groups, mounts, and files with the mark."""
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    places = (Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), Path.home(), REPOSITORY)
    files = {str(path) for place in places for path in place.glob(f"*{MARK}*")}
    return _groups() | mounts | files


def _groups() -> set[str]:
    """Return the control groups that this process made. A group with a process in it cannot be removed."""
    name = f"course-{os.getpid()}-*"
    return {str(path) for pattern in (name, f"*/{name}") for path in resource_limits.ROOT.glob(pattern)}


def left(before: set[str]) -> list[str]:
    """Return what is there now, was not there before, and does not go away by itself."""
    until = time.monotonic() + PATIENCE_SECONDS
    while (new := world() - before) and time.monotonic() < until:
        time.sleep(0.2)
    return sorted(new)


def processes_naming(root: Path) -> list[str]:
    """Return the processes whose command line or environment names this run."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            known = " ".join([*process.cmdline(), process.environ().get("GRADER_OBSERVE", "")])
            if str(root) in known and process.pid != os.getpid():
                found.append(f"process {process.pid}: {known[:100]}")
    return found


def shown(judged: Report) -> str:
    """Return the report as a terminal without colours gets it."""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    terminal.show(judged, console)
    return console.file.getvalue()


def plain(text: str) -> bool:
    """Return whether the text has no character that could control a terminal."""
    return all(letter.isprintable() or letter == "\n" for letter in text)


def problems(wanted: Submission, outcome: Outcome) -> list[str]:
    """Say in what an outcome differs from the expected one. The list is empty if it does not differ."""
    found = [f"left behind: {thing}" for thing in outcome.leftovers]
    found += [f"it found what it must not: {line}" for line in outcome.forbidden]
    found += [f"it did not get as far as to say {text!r}" for text in outcome.unsaid]
    if wanted.refused or outcome.refused:
        if not wanted.refused or wanted.refused not in outcome.refused:
            found.append(f"refused with {outcome.refused!r}, not {wanted.refused!r}")
        return found
    lost = lost_lines(outcome)
    if missing := every(wanted.lost) - lost:
        found.append(f"keeps {', '.join(sorted(missing))}")
    if extra := lost - every(wanted.lost) - every(wanted.may_lose):
        found.append(f"loses {', '.join(sorted(extra))}")
    if wanted.passes not in (None, outcome.passed):
        found.append("passes" if outcome.passed else "does not pass")
    said = "\n".join(f"{row['seen']} {row['message']}" for row in outcome.rows)
    return found + [f"does not say {text!r}" for text in wanted.says if text not in said]


def every(names: list[str]) -> set[str]:
    """Return the rubric lines with these names. `*` stands for all lines."""
    if unknown := set(names) - set(LINES) - {"*"}:
        raise ValueError(f"expected.toml names lines that the rubric has not: {', '.join(sorted(unknown))}")
    return set(LINES) if "*" in names else set(names)


def lost_lines(outcome: Outcome) -> set[str]:
    """Return the lines without full points. After an end that was not well, those that were not judged do not count."""
    trained = any(row["status"] != "not_judged" for row in outcome.rows[1:])
    return {row["id"] for row in outcome.rows
            if row["points"] < row["max"] and not (trained and row["status"] == "not_judged")}  # fmt: skip


def grader_hash() -> str:
    """Return one hash of the grader and the course's package. A grade depends on these and on the submission."""
    digest = hashlib.sha256()
    for folder in (REPOSITORY / "grader", REPOSITORY / "source_code" / "cifar"):
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".json")):
            digest.update(f"{path.relative_to(REPOSITORY)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def stored() -> dict[str, dict]:
    """Return the results so far, by submission."""
    return json.loads(RESULT.read_text())["runs"] if RESULT.exists() else {}


def up_to_date(submission: Submission, result: dict | None, grader: str) -> bool:
    """Return whether a stored result is of this source and this grader."""
    if result is None or (result["grader_sha256"], result.get("profile")) != (grader, submission.profile.name):
        return False
    with tempfile.TemporaryDirectory() as folder:
        submission.write(Path(folder, "in"))
        return result["outcome"]["source_sha256"] == source_hash(Path(folder, "in"))


def keep(submission: Submission, outcome: Outcome, grader: str) -> None:
    """Store the outcome of a run for the table. The run need then not be repeated."""
    result = {"grader_sha256": grader, "profile": submission.profile.name, "outcome": asdict(outcome)}
    results.write(RESULT, {"key": KEY, "seed": SEED, "runs": stored() | {submission.id: result}})


def run_all(wanted: list[Submission]) -> dict[str, dict]:
    """Run the submissions that have no result yet, and store each result. Return the results of all submissions."""
    grader = grader_hash()
    for number, submission in enumerate(wanted, start=1):
        if up_to_date(submission, stored().get(submission.id), grader):
            continue
        with tempfile.TemporaryDirectory(prefix="matrix-") as folder:
            outcome = run(submission, Path(folder, "run"))
        keep(submission, outcome, grader)
        told = "; ".join(problems(submission, outcome)) or "as expected"
        print(f"{number}/{len(wanted)} {submission.id}: {outcome.points:g} points, {outcome.seconds:.0f} s, {told}")
        sys.stdout.flush()
    return stored()


def table(wanted: list[Submission], runs: dict[str, dict]) -> str:
    """Return a Markdown table with a row for each submission and a column for each rubric line.

    A dot means that the line is met. `(n)` means that it is not met, but follows from another line and costs nothing.
    """
    lines = [f"| submission | threats | {' | '.join(LINES)} | points | passes | s | as expected |"]
    lines.append("|---" * (len(LINES) + 6) + "|")
    for submission in wanted:
        outcome = Outcome(**runs[submission.id]["outcome"])
        cells = [_cell(row) for row in outcome.rows] or ["refused", *[""] * (len(LINES) - 1)]
        rows = ", ".join(map(str, submission.rows))
        end = [f"{outcome.points:g}", "yes" if outcome.passed else "no", f"{outcome.seconds:.0f}"]
        told = "; ".join(problems(submission, outcome)) or "yes"
        lines.append(f"| {submission.id} | {rows} | {' | '.join([*cells, *end, told])} |")
    return "\n".join(lines)


def _cell(row: dict) -> str:
    if row["points"] < row["max"]:
        return f"{row['points']:g}"
    return "·" if row["status"] == "met" else f"({row['points']:g})"


def chosen(parser: argparse.ArgumentParser, names: list[str] | None) -> list[Submission]:
    """Return the submissions with these names, or all. The parser reports a name that no submission has."""
    known = submissions()
    if unknown := set(names or []) - {submission.id for submission in known}:
        parser.error(f"no submission {', '.join(sorted(unknown))}; expected.toml names them all")
    return [submission for submission in known if not names or submission.id in names]


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status. It is 0 if every outcome is as expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only those that run in `make test`")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these, such as right/lamb")
    args = parser.parse_args(arguments)
    wanted = [submission for submission in chosen(parser, args.only) if submission.quick or not args.quick]
    runs = run_all(wanted)
    print(table(wanted, runs))
    wrong = [submission.id for submission in wanted if problems(submission, Outcome(**runs[submission.id]["outcome"]))]
    seconds = sum(runs[submission.id]["outcome"]["seconds"] for submission in wanted)
    print(f"\n{len(wanted)} submissions in {seconds / 60:.0f} min, not as expected: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
