"""Reads whose file it is, and under which name it was handed in, from its path in a learning platform's bulk download.

The platforms have these forms:

- Moodle: a folder `Ada Lovelace_5_assignsubmission_file` for each student. The number is the student's in this
  assignment. (Moodle's own program, `importziplib.php`.)
- Canvas: one flat folder of `lovelaceada_1001_500001_name.ipynb`. The numbers are those of the student and of the file.
  `_LATE` may stand before them. A name that is there twice ends in `-1`. A text entry is `lovelaceada_1001_text.html`.
  Where names are hidden, `anon_AbC12` stands for the student. (Canvas's own program, `content_zipper.rb`.)
- Blackboard: one flat folder of `Homework 3_alovelace_attempt_2026-01-31-23-59-07_name.ipynb`, with all attempts.
  (The example in nbgrader's documentation of its zip collector.) The title may hold `_`, but not the user name.
- Brightspace: a folder `1234-5678 - Ada Lovelace - Jan 31, 2026 1159 PM` for each attempt, or `... - 31 January 2026
  1159 PM`, or a file with this beginning. The first number is the student's. (Public programs that read these.)
- GitHub Classroom: a folder `homework-3-submissions` with a clone `homework-3-ACCOUNT` of each student.
- Any other form, if the course's configuration has nbgrader's own pattern, `FileNameCollectorPlugin.named_regexp`.

Learners put archives into a download. An archive is like a folder in these paths: `..._my_assignment.zip/train.py`.
"""

import re
from collections import defaultdict
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

MOODLE = re.compile(r"(?P<name>.+?)_(?P<user>\d+)_assignsubmission_.*", re.DOTALL)
CANVAS_FILE = r"((?P<file>\d+)_(?P<rest>.+)|(?P<entry>(text|link)\.html))"
CANVAS = re.compile(rf"(?P<name>.+?)_(?P<late>LATE_)?(?P<user>\d+)_{CANVAS_FILE}", re.DOTALL)
CANVAS_HIDDEN = re.compile(rf"(?P<late>LATE_)?anon_(?P<user>\w+?)_{CANVAS_FILE}", re.DOTALL)
BLACKBOARD = re.compile(
    r"(?P<owner>.+?_.+?)_attempt_(?P<time>\d{4}(?:-\d\d){5})(_(?P<rest>.+)|(?P<note>\.txt))", re.DOTALL
)
BRIGHTSPACE = re.compile(
    r"(?P<user>\d+)-\d+ - (?P<name>.+?) - (?P<time>[\w, ]*\d{4} \d{1,4} [AP]M)( - (?P<rest>.+))?", re.DOTALL
)
ARCHIVE_ENDING = re.compile(r"\.(zip|tar|tgz|tar\.gz)\Z", re.IGNORECASE)
CLONES = re.compile(r"(?P<assignment>.+)-submissions", re.DOTALL)
DAYS = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")  # how Brightspace writes a day; it depends on the language
COPY = re.compile(r"(?P<stem>.+?)(?:-Copy|-| ?\()(?P<number>\d{1,3})\)?(?P<suffix>\.\w+)", re.DOTALL)


class HandIn(NamedTuple):
    """A student's file.

    `student` is the name that the platform gives. `person` tells students of the same name apart. `inner` is the file's
    own path. `attempt` is the time at which the attempt was handed in, in a form that can be sorted, or "" if it is not
    known. `order` is the greater, the later a file of the same attempt was handed in. `late` is the platform's mark.
    `path` is the whole path, without a folder that is around the class.
    """

    student: str
    person: str
    inner: PurePosixPath
    attempt: str = ""
    order: int = 0
    late: bool = False
    path: PurePosixPath = PurePosixPath()


def read(path: PurePosixPath, pattern: re.Pattern | None = None) -> HandIn | None:
    """Read a path in one of these forms. None if it is in another form. `pattern` is the course's own, or None."""
    if pattern and (match := pattern.match(str(path)) or pattern.match(path.name)):
        return _by_pattern(match, path)
    top, *folders = path.parts
    if folders and (match := MOODLE.fullmatch(without_archive(top))):
        return HandIn(match["name"], match["user"], PurePosixPath(*folders))
    if match := BRIGHTSPACE.fullmatch(top):
        inner = PurePosixPath(match["rest"] or "", *folders)
        return HandIn(match["name"], match["user"], inner, _brightspace_time(match["time"])) if inner.parts else None
    if folders and without_archive(top) == top:
        return None
    if match := _blackboard(top):
        inner = PurePosixPath(match["rest"] or "note.txt", *folders)
        return HandIn(match["owner"].rpartition("_")[2], match["owner"], inner, match["time"])
    if match := CANVAS_HIDDEN.fullmatch(top):
        return _canvas(match, f"anon-{match['user']}", folders)
    if match := CANVAS.fullmatch(top):
        return _canvas(match, f"{match['name']}-{match['user']}", folders)
    return None


def told_apart(hand_ins: dict[int, HandIn]) -> dict[int, HandIn]:
    """Return the hand-ins with the names of Blackboard's users as persons, where these names are certain.

    In `HW_3_john_smith` the user may be `smith`. If other users share the beginning `HW_3_john_`, it is a title, and
    `smith` is certain. If nobody does, the person stays the whole text, which no other user has.
    """
    users: dict[str, set[str]] = defaultdict(set)  # by the text before their names
    for one in hand_ins.values():
        if one.person.endswith(f"_{one.student}"):
            users[one.person.removesuffix(one.student)].add(one.student)
    return {
        number: one._replace(person=one.student)
        if len(users.get(one.person.removesuffix(one.student), ())) > 1
        else one
        for number, one in hand_ins.items()
    }


def _blackboard(top: str) -> re.Match | None:
    """Read a name in Blackboard's form.

    A learner chooses the end of a file's name. A name that begins in Canvas's form is thus Canvas's, whatever follows.
    """
    match, canvas = BLACKBOARD.fullmatch(top), CANVAS_HIDDEN.fullmatch(top) or CANVAS.fullmatch(top)
    return None if match and canvas and canvas["file"] and canvas.end("file") < match.end("owner") else match


def without_archive(name: str) -> str:
    """A name without the ending of an archive."""
    return ARCHIVE_ENDING.sub("", name) or name


def account(folder: str, top: str) -> str:
    """The account of a clone that GitHub Classroom made in `folder`, or the clone's own name in another folder."""
    match = CLONES.fullmatch(folder)
    return top.removeprefix(f"{match['assignment']}-") if match else top


def without_copy_mark(name: str) -> tuple[str, int]:
    """A file's name without the mark of a copy, such as `-1`, ` (1)` or `-Copy1`, and the copy's number. 0 is none."""
    match = COPY.fullmatch(name)
    return (f"{match['stem']}{match['suffix']}", int(match["number"])) if match else (name, 0)


def _canvas(match: re.Match, student: str, folders: list[str]) -> HandIn:
    inner = PurePosixPath(match["rest"] or match["entry"], *folders)
    return HandIn(student, match["user"], inner, order=int(match["file"] or 0), late=bool(match["late"]))


def _by_pattern(match: re.Match, path: PurePosixPath) -> HandIn | None:
    """Read the groups that nbgrader's zip collector reads. None if the pattern has not found a student and a file."""
    found = match.groupdict()
    if not found.get("student_id") or not found.get("file_id"):
        return None
    name = found["file_id"]
    inner = PurePosixPath(name if name.endswith(path.suffix) else f"{name}{path.suffix}")
    return HandIn(found["student_id"], found["student_id"], inner, found.get("timestamp") or "")


def _brightspace_time(text: str) -> str:
    """A time such as `Jan 31, 2026 1159 PM` in a form that can be sorted. A time that no clock shows comes first."""
    day, clock, half = re.fullmatch(r"(.+) (\d+) (\w+)", text).groups()
    for form in DAYS:
        try:
            return datetime.strptime(f"{day} {clock.zfill(4)} {half}", f"{form} %I%M %p").isoformat()
        except ValueError:
            continue
    return ""
