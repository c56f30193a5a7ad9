"""Finds out whose file each path of a download is, and which id the student has in the course."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from grader.classroom.collecting import platforms
from grader.classroom.collecting.platforms import MOODLE, HandIn
from grader.classroom.collecting.student_submission import PROGRAM, STUDENT
from grader.common.contract import ENTRY
from grader.common.text import quoted

MAX_PEOPLE = 3  # people of one name in a message


def hand_ins(
    paths: dict[int, PurePosixPath], assignments: frozenset[str], folder: str, pattern: re.Pattern | None
) -> dict[int, HandIn]:
    """Read whose file each path is. The result has the same numbers, without those of files in no student's folder."""
    inner = _without_outer_folder(paths, assignments, pattern)
    if inner is not paths:
        folder = next(iter(paths.values())).parts[0]
    found = {}
    for number, path in inner.items():
        hand_in = platforms.read(path, pattern)
        if hand_in is None and len(path.parts) > 1:
            hand_in = _in_a_folder(path, folder)
        if hand_in:
            found[number] = hand_in._replace(path=path)
    return platforms.told_apart(found)


def by_student(hand_ins: dict[int, HandIn]) -> dict[str, list[int]]:
    """The numbers of each student's files, by the student's id."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, hand_in in hand_ins.items():
        found[student_id(hand_in.student)].append(number)
    return found


def several_people(student: str, files: list[HandIn]) -> str:
    """Say that several people would be the same student, or return "". They have the same name, or similar ones."""
    people = sorted({(one.student, one.person) for one in files})
    if len(people) == 1:
        return ""
    shown = [quoted(name if name == person else f"{name} ({person})") for name, person in people[:MAX_PEOPLE]]
    return f"{' and '.join(shown)} would be the same student {student}; rename their folders or files"


def student_id(name: str) -> str:
    """A student's id from a name: its plain letters. What Moodle puts behind a student's name is left out.

    A name without plain letters, like one in Cyrillic, becomes its hash, which is the same in every download.
    """
    if match := MOODLE.fullmatch(name):
        name = match["name"]
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9._@+-]+", "-", plain).strip("-._@+")[:64]
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:12]
    return plain if STUDENT.fullmatch(plain) else f"name-{digest}"


def assignment_of(path: PurePosixPath, assignments: Iterable[str]) -> str | None:
    """The assignment whose notebook a path is, by its name without the mark of a copy."""
    if path.suffix != ".ipynb":
        return None
    for name in (path.name, platforms.without_copy_mark(path.name)[0]):
        if name.removesuffix(".ipynb") in assignments:
            return name.removesuffix(".ipynb")
    return None


def _in_a_folder(path: PurePosixPath, folder: str) -> HandIn:
    """Read a path that begins with a student's folder."""
    top, inner = platforms.without_archive(path.parts[0]), PurePosixPath(*path.parts[1:])
    return HandIn(platforms.account(folder, top), top, inner)


def _is_a_students(top: str, pattern: re.Pattern | None) -> bool:
    """Whether the first part of a path names a student: what lies below it was named by this student."""
    return bool((pattern and pattern.match(top)) or platforms.read(PurePosixPath(top, "file")))


def _without_outer_folder(
    paths: dict[int, PurePosixPath], assignments: frozenset[str], pattern: re.Pattern | None
) -> dict[int, PurePosixPath]:
    """The paths without a folder that is around all of them, and is no student's. The same paths if there is none."""
    if len({path.parts[0] for path in paths.values()}) != 1 or any(len(path.parts) == 1 for path in paths.values()):
        return paths
    if _is_a_students(next(iter(paths.values())).parts[0], pattern):
        return paths
    inner = {number: PurePosixPath(*path.parts[1:]) for number, path in paths.items()}
    if _are_clones(next(iter(paths.values())).parts[0], inner.values()):
        return inner
    if any(platforms.read(path, pattern) or MOODLE.fullmatch(path.parts[0]) for path in inner.values()):
        return inner
    students_of: dict[str, set[str]] = defaultdict(set)  # the folders with an assignment's notebook, or with a program
    for path in inner.values():
        if name := assignment_of(path, assignments):
            students_of[name].add(path.parts[0] if len(path.parts) > 1 else "")
        elif path.parts[1:] == (PROGRAM, ENTRY):
            students_of[PROGRAM].add(path.parts[0])
    several = any(len(folders) > 1 and "" not in folders for folders in students_of.values())
    return inner if several else paths


def _are_clones(top: str, inner: Iterable[PurePosixPath]) -> bool:
    """Whether the paths lie in clones of a classroom, which may be a single one."""
    match = platforms.CLONES.fullmatch(top)
    return bool(match) and all(
        len(path.parts) > 1 and path.parts[0].startswith(f"{match['assignment']}-") for path in inner
    )
