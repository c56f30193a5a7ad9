"""A batch's results as tables: `results.csv` for people, `results.json` for programs."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

from grader.batch.journal import Result, Settings
from grader.common.atomic_write import write_whole
from grader.common.text import for_csv


def write_results(results: list[Result], settings: Settings, folder: Path) -> None:
    """Write `results.csv` and `results.json`. The key is left out, because it may be secret."""
    common = {name: value for name, value in asdict(settings).items() if name != "key"}
    content = {**common, "results": [asdict(result) for result in results]}
    write_whole(folder / "results.json", json.dumps(content, indent=1) + "\n")
    write_whole(folder / "results.csv", as_csv(results))


def as_csv(results: list[Result]) -> str:
    """The table with one row per submission. No cell is a formula for a spreadsheet."""
    lines = list(dict.fromkeys(line for result in results for line in result.lines))
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["name", "points", "passed", *lines, "seconds", "message", "folder"])
    for result in results:
        points = [result.lines.get(line, "") for line in lines]
        row = [result.name, result.points, "yes" if result.passed else "no", *points, result.seconds]
        writer.writerow(map(for_csv, [*row, result.message, result.folder]))
    return text.getvalue()
