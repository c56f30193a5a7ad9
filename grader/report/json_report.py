"""Writes the report of one check as JSON, for programs."""

import json
from dataclasses import asdict
from pathlib import Path

from grader.common.atomic_write import write_whole
from grader.grading.grade import Report

SCHEMA = 4  # this number grows when the format changes, so that programs notice it


def text(report: Report) -> str:
    """Return the content of `report.json`."""
    return json.dumps({"schema": SCHEMA, **asdict(report)}, indent=1) + "\n"


def write(report: Report, path: Path) -> None:
    """Write the report. If that fails, no part of it is written."""
    write_whole(path, text(report))
