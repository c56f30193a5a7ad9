"""Tells an instructor what became of each file of a download: in a few lines, and in a table with one row per file."""

import csv
import io
from collections import defaultdict
from pathlib import Path

from grader.classroom.collecting.downloads import UNPACKED
from grader.classroom.collecting.import_submissions import Download
from grader.classroom.collecting.placement import Fate
from grader.classroom.course import Course
from grader.common.atomic_write import write_whole
from grader.common.text import for_csv, one_line

FILE = "export/handed_in.csv"  # in the course's folder
COLUMNS = ("file", "what became of it", "student", "assignment", "late", "handed in", "reason")
GRADED, OPENED, NOT_GRADED = "graded", "opened", "not graded"
MAX_PATH = 100  # characters of a path in the terminal
MAX_SHOWN = 5  # files for each reason in the terminal


def save(download: Download, course: Course) -> Path:
    """Write the table, and return its path."""
    path = course.root / FILE
    path.parent.mkdir(exist_ok=True)
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, fate in zip(download.names, download.fates, strict=True):
        homes = fate.homes or [None]
        students = ", ".join(sorted({home.student for home in homes if home}))
        assignments = ", ".join(home.assignment for home in homes if home)
        late = "yes" if fate.late else ""
        writer.writerow(map(for_csv, (name, state(fate), students, assignments, late, fate.time, fate.reason)))
    write_whole(path, text.getvalue())
    return path


def state(fate: Fate) -> str:
    """What became of a file, in a word or two."""
    if fate.reason == UNPACKED:
        return OPENED
    return GRADED if fate.homes and not fate.reason else NOT_GRADED


def lines(download: Download) -> list[str]:
    """Say how many submissions and files there are, and name files that are not graded, with the reason."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, fate in zip(download.names, download.fates, strict=True):
        if state(fate) == NOT_GRADED:
            by_reason[fate.reason].append(name)
    not_graded = sum(map(len, by_reason.values()))
    count = len(download.submissions)
    told = [f"taken in: {count} submissions from {len(download.names)} files; files that are not graded: {not_graded}"]
    if late := sorted({home.student for fate in download.fates if fate.late for home in fate.homes}):
        told.append(f"the platform marks as late: {', '.join(late)}")
    for reason, names in sorted(by_reason.items(), key=lambda item: (len(item[1]), item[0])):
        shown = [one_line(name, MAX_PATH) for name in sorted(names)[:MAX_SHOWN]]
        more = [f"{len(names) - MAX_SHOWN} more"] if len(names) > MAX_SHOWN else []
        told.append("\n    ".join([f"not graded, {one_line(reason)}:", *shown, *more]))
    return told
