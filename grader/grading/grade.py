"""The report of one check: judged once, then shown in the terminal and written as JSON."""

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.common import untrusted
from grader.common.atomic_write import write_whole
from grader.grading.evidence import Evidence
from grader.grading.rubric import MUST_PASS, RUBRIC, Line

SCHEMA = 1


@dataclass(frozen=True)
class Row:
    """A rubric line as judged. `met`: whether in truth; a line that only follows from another keeps its points."""

    id: str
    met: bool
    points: float
    max: int
    asks: str
    seen: str
    message: str


@dataclass(frozen=True)
class Report:
    """A grade: `passed`, points of 100, and its rows; `isolation` says what held the run."""

    submission: str
    passed: bool
    points: float
    rows: list[Row]
    isolation: str
    record: dict


def judge(evidence: Evidence, submission: str, record: dict) -> Report:
    """Apply the rubric in order."""
    rows: dict[str, Row] = {}
    for line in RUBRIC:
        rows[line.id] = _judge_line(line, evidence, rows)
    passed = all(rows[name].met for name in MUST_PASS)
    points = sum(row.points for row in rows.values())
    return Report(submission, passed, points, list(rows.values()), evidence.run.isolation, record)


def _judge_line(line: Line, evidence: Evidence, rows: dict[str, Row]) -> Row:
    first = RUBRIC[0].id
    if line.id != first and not rows[first].met:
        return Row(line.id, False, 0, line.points, line.asks, "not judged", f'First: "{rows[first].asks}".')
    finding = line.check(evidence)
    causes = [name for name in line.follows if not rows[name].met]
    if finding.share < 1 and causes and _excusable(evidence):
        message = f'Follows from the line "{rows[causes[0]].asks}", and costs nothing more.'
        return Row(line.id, False, line.points, line.points, line.asks, finding.seen, message)
    points = line.points * finding.share
    return Row(line.id, finding.share == 1, points, line.points, line.asks, finding.seen, finding.advice)


def _excusable(evidence: Evidence) -> bool:
    """Whether enough was done for a missing line to be a consequence: workers in touch, half an epoch at the least."""
    return evidence.connected() and evidence.share() * evidence.profile.epochs >= 0.5


def versions() -> dict[str, str]:
    """What the grade was measured with."""
    from importlib.metadata import version

    return {"python": platform.python_version(), "torch": torch.__version__, "horovod": version("horovod")}


def write_json(report: Report, path: Path) -> None:
    """Write the report as JSON, whole or not at all."""
    write_whole(path, json.dumps({"schema": SCHEMA, **asdict(report)}, indent=1) + "\n")


def printable(text: str) -> str:
    """Text from a submission without control characters or markup: it must not steer the terminal."""
    return escape(untrusted.printable(text))


def show(report: Report, console: Console) -> None:
    """Print the grade card."""
    table = Table(title=f"Grade card: {printable(report.submission)}", title_justify="left", show_lines=True)
    table.add_column("Points", justify="right", no_wrap=True)
    table.add_column("What is asked")
    table.add_column("What was seen, and what to change", ratio=1)
    for row in report.rows:
        seen = printable(row.seen) + (f"\n[bold]{printable(row.message)}[/]" if row.message else "")
        table.add_row(f"[{'green' if row.met else 'red'}]{row.points:g} / {row.max}[/]", row.asks, seen)
    console.print(table)
    verdict = "[bold green]PASSED[/]" if report.passed else "[bold red]NOT PASSED[/]"
    console.print(f"{verdict}  {report.points:g} of 100 points", highlight=False)
    console.print(f"isolation: {report.isolation}", highlight=False)
