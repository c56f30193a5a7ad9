"""Writes the report of one check as a page. The HTML file needs no script, no network and no other file."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from grader.common.atomic_write import write_whole
from grader.common.text import for_page
from grader.grading.evidence import Evidence
from grader.grading.grade import Report
from grader.grading.status import IN_WORDS
from grader.report.figures import accuracy, learning_rate, loss, one_update, shards, weights
from grader.report.figures.picture import Picture

DRAWINGS = (loss, learning_rate, shards, one_update, weights, accuracy)  # they explain a run in this order
MAX_LOG_LINES = 60  # lines; the page shows so many from the end of the log, where errors stand
MAX_LOG_LENGTH = 60_000  # characters; the lines are looked for only so far before the end, because a line may be long
MAX_TEXT = 600  # characters; any text on the page is cut to this length, because a submission may write without end


def write(report: Report, evidence: Evidence, path: Path) -> None:
    """Write the page. If that fails, no part of it is written."""
    write_whole(path, render(report, evidence))


def render(report: Report, evidence: Evidence) -> str:
    """Return the page as HTML. Only the template and the pictures are markup, and all other text is escaped."""
    page = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, finalize=_clean, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    ).get_template("html_report.html")  # fmt: skip
    return page.render(
        report=report, next_step=next_step(report), in_words=IN_WORDS,
        advised=any(row.message for row in report.rows),
        pictures=all_pictures(evidence), facts=facts(report, evidence),
        log=evidence.log[-MAX_LOG_LENGTH:].splitlines()[-MAX_LOG_LINES:],
    )  # fmt: skip


def all_pictures(evidence: Evidence) -> list[Picture]:
    """Return the pictures of a run, in the order in which they explain it."""
    return [module.draw(evidence) for module in DRAWINGS]


def _clean(value: object) -> object:
    """Return a text without terminal codes, cut to MAX_TEXT characters. Other values stay as they are."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return for_page(value, MAX_TEXT)


def next_step(report: Report) -> str:
    """Say what to do next. This is the advice of the line that lost the most points."""
    unmet = [row for row in report.rows if row.status == "unmet"]
    if not unmet:
        return "Every line is met: there is nothing to change."
    costliest = max(unmet, key=lambda row: row.max - row.points)
    return costliest.message or costliest.seen


def facts(report: Report, evidence: Evidence) -> dict[str, str]:
    """Return by name what the grade was measured with. The key is left out, because it may be a secret."""
    profile, run, record = evidence.profile, evidence.run, report.record
    firsts = [worker.first for worker in evidence.workers if worker.first]
    loopback, cpu_seconds = run.outside.loopback, run.outside.cpu_seconds
    values = {
        "Profile": f"{profile.name}: {profile.epochs} epochs of {profile.train_images:,} images, {profile.batch_size} "
        f"images per worker and update, target {profile.target:.2%} of {profile.test_images:,} test images",
        "Seed": record.seed if record else None,
        "Duration": f"{run.seconds:.0f} s; " + (run.stopped or f"ended by itself with status {run.status}"),
        "Devices": ", ".join(first.device for first in firsts),
        "Optimizer": ", ".join(dict.fromkeys(first.optimizer for first in firsts)),
        "Between workers": f"{loopback[-1][1] / 1e6:,.0f} MB over the loopback" if loopback else None,
        "CPU seconds by worker": ", ".join(f"{cpu_seconds[rank]:.0f}" for rank in sorted(cpu_seconds)),
        "Versions": ", ".join(f"{name} {version}" for name, version in (record.versions if record else {}).items()),
        "Source, SHA-256": record.source_sha256 if record else None,
        "Isolation and limits": report.isolation,
    }
    return {name: str(value) for name, value in values.items() if value not in (None, "")}
