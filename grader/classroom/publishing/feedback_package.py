"""Packs the pages of feedback into an archive that a learning platform hands out to the students.

The platform's download gives each file a folder or a name. A page has those of the file that the student handed in. By
them the platform finds the student:

- Moodle: a folder `Ada Lovelace_5_assignsubmission_file`. (Moodle's `importziplib.php` of `assignfeedback_file`.)
- Canvas: the beginning `lovelaceada_1001_500001_`. (Canvas's `infer_comment_context_from_filename`.)
- Brightspace: a folder `1234-5678 - Ada Lovelace - Jan 31, 2026 1159 PM`. (Brightspace's help on "Add Feedback Files".)

Blackboard and GitHub Classroom have no command that takes such an archive.
"""

import zipfile
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.classroom.collecting import platforms
from grader.classroom.collecting.import_submissions import keep_people_apart, planned
from grader.classroom.collecting.placement import Fate
from grader.classroom.course import Course
from grader.common.text import quoted

ENDING = ".html"


@dataclass
class Package:
    """The archive, the number of its pages, and a message for each submission and each namesake without one."""

    path: Path
    pages: int = 0
    left_out: list[str] = field(default_factory=list)


def pack(course: Course, source: Path, pages: Collection[tuple[str, str]]) -> Package:
    """Write the pages of those whose submissions are in `source`, the platform's download, to `export/`.

    `pages` names the students and assignments whose pages are new. Raises SubmissionImportError if the download cannot
    be read.
    """
    fates = planned(source, course).fates
    keep_people_apart(course, fates, note=False)
    name = platforms.without_archive(source.resolve().name)
    package = Package(course.root / "export" / f"feedback_{name}.zip")
    apart = [f"{quoted(fate.path.parts[0])}: {fate.reason}" for fate in fates if fate.kept_apart]
    package.left_out += dict.fromkeys(apart)
    package.path.parent.mkdir(exist_ok=True)
    part = package.path.with_name(f"{package.path.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for (student, assignment), path in _handed_in(fates).items():
                page = course.folder("feedback", student, assignment) / f"{assignment}{ENDING}"
                reason = "there is no page"
                if (student, assignment) in pages:
                    reason = _add(archive, page, _name(path, assignment))
                if reason:
                    package.left_out.append(f"{student}, {assignment}: {reason}")
        part.replace(package.path)
        package.pages = len(archive.namelist())
    finally:
        part.unlink(missing_ok=True)
    return package


def _add(archive: zipfile.ZipFile, page: Path, name: str) -> str:
    """Add a page, and return why it was not added, or ""."""
    if name in archive.namelist():
        return f"another page has the name {quoted(name)}"
    try:
        archive.write(page, name)
    except UnicodeEncodeError:
        return "the platform's name of the student cannot be written; rename it in the download"
    return ""


def _handed_in(fates: list[Fate]) -> dict[tuple[str, str], PurePosixPath]:
    """The path of a file of each submission in a download: the notebook's, or else the first file's."""
    found: dict[tuple[str, str], PurePosixPath] = {}
    for fate in fates:
        for home in fate.homes:
            submission = home.student, home.assignment
            if submission not in found or home.inner.suffix == ".ipynb":
                found[submission] = fate.path
    return found


def _name(path: PurePosixPath, assignment: str) -> str:
    """The name of a page in the archive, from the path of the file that was handed in.

    The platform reads the first part of the path. Where all files lie in one folder, this is the beginning of the
    file's name. Where a learner handed in an archive, this is the archive's name.
    """
    first = platforms.without_archive(path.parts[0])
    if len(path.parts) > 1 and first != path.parts[0]:
        return f"{first}_{assignment}{ENDING}"
    if len(path.parts) == 1 or path.suffix == ".ipynb":
        return str(path.with_suffix(ENDING))
    return f"{first}/{assignment}{ENDING}"
