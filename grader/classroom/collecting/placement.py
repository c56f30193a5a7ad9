"""Decides for each file of a download which submission it belongs to, or why it belongs to none.

Only the files' paths are looked at. Below a student's folder the notebooks count under their released names, and the
program is the folder in which `train.py` lies. Of several attempts the last counts. Of several notebooks or programs
of an attempt the highest in the tree counts.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import NamedTuple

from grader.classroom.collecting import platforms, students
from grader.classroom.collecting.platforms import HandIn
from grader.classroom.collecting.student_submission import PROGRAM
from grader.common.contract import ENTRY
from grader.common.text import quoted
from grader.submission.archives import passed_over

LEFT_BY_A_SYSTEM = {"thumbs.db", "desktop.ini"}  # files that Windows leaves in folders
NOTEBOOK = ".ipynb"
CLOSE = 0.6  # from this likeness on a name may be a misspelt one; difflib's own default

BY_A_TOOL = "a tool made it, like git, Jupyter or macOS"
NO_STUDENT = "it lies in no student's folder; put it into a folder with the student's name"
EARLIER = "an earlier attempt, which a later one replaces"
SAME_PATH = "another file with the same path comes later"
NOT_GRADED = "only the notebook and the program are graded"


class Home(NamedTuple):
    """Where a file belongs: a student's submission for an assignment, and the file's path in it."""

    student: str
    assignment: str
    inner: PurePosixPath


@dataclass
class Fate:
    """What becomes of a file. It has homes, or a reason why it has none.

    `late` and `time` are what the platform says of it: whether it was late, and when it was handed in. `person` tells
    its student from others of the same name, if the platform does. `kept_apart` says that it has no home because of
    such others. `path` is its path without a folder that is around the class.
    """

    homes: list[Home] = field(default_factory=list)
    reason: str = ""
    late: bool = False
    time: str = ""
    person: str = ""
    kept_apart: bool = False
    path: PurePosixPath = field(default_factory=PurePosixPath)


@dataclass(frozen=True)
class Released:
    """The names of the released assignments, and which of them ask for a program."""

    names: frozenset[str]
    with_program: frozenset[str]


def place(
    paths: list[PurePosixPath],
    released: Released,
    folder: str = "",
    pattern: re.Pattern | None = None,
    attempts: int | None = None,
) -> list[Fate]:
    """Return the fate of each path, in the same order.

    `folder` is the name of the folder that holds them. `pattern` is described in `platforms`. With `attempts`, each
    student's later attempts are left out.
    """
    fates = [Fate(reason=BY_A_TOOL if _by_a_tool(path) else NO_STUDENT) for path in paths]
    hand_ins = _hand_ins(paths, released, folder, pattern)
    for number, hand_in in hand_ins.items():
        fates[number] = Fate(late=hand_in.late, time=hand_in.attempt, person=hand_in.person, path=hand_in.path)
    for student, numbers in students.by_student(hand_ins).items():
        files = {number: hand_ins[number] for number in numbers}
        if several := students.several_people(student, list(files.values())):
            for number in files:
                fates[number].reason, fates[number].kept_apart = several, True
            continue
        counting = _without_earlier(_up_to(files, fates, attempts, released), fates, released.names)
        _place_student(student, counting, released, fates)
    return fates


def most_attempts(
    paths: list[PurePosixPath], released: Released, folder: str = "", pattern: re.Pattern | None = None
) -> int:
    """Return the most attempts that a student has at one assignment in a download. It is at least 1."""
    hand_ins = _hand_ins(paths, released, folder, pattern)
    return max(
        (
            len(times)
            for numbers in students.by_student(hand_ins).values()
            for times in _attempts([hand_ins[number] for number in numbers], released).values()
        ),
        default=1,
    )


def _hand_ins(
    paths: list[PurePosixPath], released: Released, folder: str, pattern: re.Pattern | None
) -> dict[int, HandIn]:
    """Read whose files the paths are, by number. What a tool made, and what nobody owns, is left out."""
    own = {number: path for number, path in enumerate(paths) if not _by_a_tool(path)}
    return students.hand_ins(own, released.names, folder, pattern)


def _by_a_tool(path: PurePosixPath) -> bool:
    return passed_over(str(path)) or path.name.lower() in LEFT_BY_A_SYSTEM


def _key(one: HandIn, released: Released) -> str:
    """The assignment that a file counts for as an attempt. It is "" for all files but notebooks and `train.py`."""
    if name := students.assignment_of(one.inner, released.names):
        return name
    only = next(iter(released.with_program)) if len(released.with_program) == 1 else PROGRAM
    return only if _is_entry(one.inner) else ""


def _attempts(files: Iterable[HandIn], released: Released) -> dict[str, list[str]]:
    """The times of a student's attempts at each assignment, in order. Under "" are those at none."""
    found: dict[str, set[str]] = defaultdict(set)
    for one in files:
        found[_key(one, released)].add(one.attempt)
    found[""] -= set().union(*(times for key, times in found.items() if key))
    return {key: sorted(times) for key, times in found.items()}


def _up_to(files: dict[int, HandIn], fates: list[Fate], attempts: int | None, released: Released) -> dict[int, HandIn]:
    """The files of the first `attempts` attempts at each assignment. The others get a reason.

    A file that is no notebook and no `train.py` goes with those of its attempt.
    """
    if attempts is None:
        return files
    times = _attempts(files.values(), released)
    late = {key: set(found[attempts:]) for key, found in times.items()}
    for number, one in files.items():
        key = _key(one, released)
        if any(one.attempt in late[other] for other in ([key] if key else times)):
            fates[number].reason = f"a later attempt than the {attempts} that are graded"
    return {number: one for number, one in files.items() if not fates[number].reason}


def _without_earlier(files: dict[int, HandIn], fates: list[Fate], assignments: frozenset[str]) -> dict[int, HandIn]:
    """The files of which no later version was handed in. The others get a reason."""
    last: dict[str, list[int]] = defaultdict(list)
    for number in sorted(files, key=lambda number: (files[number].attempt, files[number].order, number)):
        one, others = files[number], last[_own_path(files[number], assignments)]
        for other in others:
            before = files[other]
            if (before.attempt, before.order) != (one.attempt, one.order):
                fates[other].reason = EARLIER
            elif before.inner == one.inner:
                fates[other].reason = SAME_PATH
        others[:] = [other for other in others if not fates[other].reason] + [number]
    return {number: one for number, one in files.items() if not fates[number].reason}


def _own_path(hand_in: HandIn, assignments: frozenset[str]) -> str:
    """A file's own path, which its later versions have as well.

    Canvas marks a later version like a copy, and its number tells which is the last.
    """
    if hand_in.order and (name := students.assignment_of(hand_in.inner, assignments)):
        return f"{name}.ipynb"
    return ENTRY if hand_in.order and _is_entry(hand_in.inner) else str(hand_in.inner)


def _place_student(student: str, files: dict[int, HandIn], released: Released, fates: list[Fate]) -> None:
    """Give each of a student's files its homes, or a reason."""
    paths = {number: one.inner for number, one in files.items()}
    attempts = {number: one.attempt for number, one in files.items()}
    notebooks = _notebooks(paths, attempts, released.names)
    for assignment, number in notebooks.items():
        fates[number].homes.append(Home(student, assignment, PurePosixPath(f"{assignment}.ipynb")))
    asked = [name for name in sorted(released.with_program) if name in notebooks]
    if not notebooks and len(released.with_program) == 1:
        asked = list(released.with_program)  # who hands in a program alone means the only assignment that asks for one
    for assignment in asked:
        around = paths[notebooks[assignment]].parent if assignment in notebooks else PurePosixPath()
        for number, inner in _program(paths, attempts, around):
            fates[number].homes.append(Home(student, assignment, inner))
    for number, path in paths.items():
        if not fates[number].homes:
            fates[number].reason = _reason(path, released, notebooks, paths)


def _notebooks(
    paths: dict[int, PurePosixPath], attempts: dict[int, str], assignments: frozenset[str]
) -> dict[str, int]:
    """The number of the notebook that counts, by assignment. A name without a copy's mark counts first."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, path in paths.items():
        if name := students.assignment_of(path, assignments):
            found[name].append(number)

    def rank(name: str, number: int) -> tuple:
        path = paths[number]
        is_copy = path.name != f"{name}.ipynb"
        return len(path.parts), is_copy, -platforms.without_copy_mark(path.name)[1], str(path)

    return {
        name: min(_of_last_attempt(numbers, attempts), key=lambda number, name=name: rank(name, number))
        for name, numbers in found.items()
    }


def _of_last_attempt(numbers: list[int], attempts: dict[int, str]) -> list[int]:
    last = max(attempts[number] for number in numbers)
    return [number for number in numbers if attempts[number] == last]


def _is_entry(path: PurePosixPath) -> bool:
    return ENTRY in (path.name, platforms.without_copy_mark(path.name)[0])


def _program(
    paths: dict[int, PurePosixPath], attempts: dict[int, str], around: PurePosixPath
) -> Iterator[tuple[int, PurePosixPath]]:
    """The files of the program that counts, with their paths in a submission.

    It is looked for below the notebook's folder first, and then everywhere. Files of attempts before that of its
    `train.py` do not belong to it.
    """
    entries = [number for number, path in paths.items() if _is_entry(path)]
    if not entries:
        yield from _folder_without_entry(paths)
        return

    def rank(number: int) -> tuple:
        path = paths[number]
        named = path.parent.name == PROGRAM
        return not path.is_relative_to(around), not named, len(path.parts), path.name != ENTRY, str(path)

    entry = min(_of_last_attempt(entries, attempts), key=rank)
    folder = paths[entry].parent
    alone = folder in (PurePosixPath(), around)  # it lies beside the notebook, or beside all that was handed in
    yield entry, PurePosixPath(PROGRAM) / ENTRY
    for number, path in paths.items():
        if number in entries or path.suffix == NOTEBOOK or attempts[number] < attempts[entry]:
            continue
        if path.parent == folder and path.suffix == ".py" if alone else path.is_relative_to(folder):
            yield number, PurePosixPath(PROGRAM) / path.relative_to(folder)


def _folder_without_entry(paths: dict[int, PurePosixPath]) -> Iterator[tuple[int, PurePosixPath]]:
    """The files of the program's folder, if `train.py` is missing in it. The grade then says so."""
    folders = {folder for path in paths.values() for folder in path.parents if folder.name == PROGRAM}
    if folders:
        first = min(folders, key=lambda folder: (len(folder.parts), str(folder)))
        for number, path in paths.items():
            if path.is_relative_to(first) and path.suffix != NOTEBOOK:
                yield number, PurePosixPath(PROGRAM) / path.relative_to(first)


def _reason(path: PurePosixPath, released: Released, notebooks: dict[str, int], paths: dict[int, PurePosixPath]) -> str:
    """Say why a student's file belongs to no submission, and what can be done."""
    if name := students.assignment_of(path, released.names):
        return f"another notebook of this assignment counts, {quoted(str(paths[notebooks[name]]))}"
    if path.suffix == NOTEBOOK:
        close = get_close_matches(path.stem, sorted(released.names), 1, CLOSE)
        meant = (
            f"; if {close[0]}.ipynb is meant, give it that name in the download, and repeat the command"
            if close
            else ""
        )
        return f"no assignment has the name {quoted(path.name)}{meant}"
    if path.suffix == ".py" and not released.with_program & set(notebooks):
        names = " or ".join(f"{name}.ipynb" for name in sorted(released.with_program))
        return f"a program is graded together with {names}, which is not there" if names else NOT_GRADED
    if path.suffix == ".py":
        return f"it does not belong to the program that counts, which is the folder of {ENTRY}"
    return NOT_GRADED
