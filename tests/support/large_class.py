"""A made-up class goes the whole way, from a platform's download to the table that the platform imports.

    python -m tests.support.large_class runs/large-class --students 200
    python -m tests.support.large_class --show

Each learner hands in one notebook and nearly always a program, in the form of Canvas's download. What is wrong in them
is drawn for each learner. The command says how long each part took, and whether each grade is as expected. If it is
interrupted, the same command goes on. `--show` prints the saved result as a table, with what more machines would take.
"""

import argparse
import io
import json
import random
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
from rich.console import Console

from benchmarks.experiment import results
from grader import exercises
from grader.classroom import policy
from grader.classroom.collecting.import_submissions import import_submissions
from grader.classroom.course import CONFIG, Course
from grader.classroom.grading import record
from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.publishing import feedback_package, platform_grades, release
from grader.classroom.publishing.export import export
from grader.classroom.publishing.feedback import release_feedback
from grader.common.atomic_write import write_whole
from grader.notebooks.build import SOLUTIONS
from tests.grader.exercises.test_sandboxed import PLAIN
from tests.support import submission_suite
from tests.support.files import as_zip
from tests.support.submission_suite import Submission
from tests.support.synthetic_class import (
    ANSWERS,
    NOTEBOOKS,
    PROFILE,
    PROGRAM,
    STUB,
    Expected,
    _always_0,
    _cell,
    differences_of,
    expected_of_program,
)  # fmt: skip

NOTEBOOK = NOTEBOOKS[0]
RESULT = results.RESULTS / "large_class" / "class-0.json"
MACHINES = range(1, 9)
SOLVED, HANDED_IN = 0.7, 0.9  # the share of plain answers, and of learners with a program
# What an answer may be in place of the plain one. The last of these is right: the function stands before the cell ends.
OTHERS: tuple[Callable[[str], str], ...] = (
    lambda id: STUB,
    _always_0,
    lambda id: f"def {exercises.get(id).function}(",
    lambda id: f"{PLAIN[id]}\n\nraise SystemExit(1)",
)


@dataclass(frozen=True)
class Learner:
    """A learner's number, the sources of the answers by exercise, and the program, or None."""

    number: int
    answers: dict[str, str]
    program: Submission | None

    @property
    def person(self) -> int:
        """The platform's number of this learner."""
        return 1000 + self.number

    @property
    def student(self) -> str:
        """The student's id in the course."""
        return f"learner{self.number:03}-{self.person}"

    @property
    def points(self) -> float:
        """What the notebook must earn."""
        right = [id for id, source in self.answers.items() if source.startswith(PLAIN[id])]
        return sum(exercises.get(id).points for id in right)


def learners(count: int) -> list[Learner]:
    """Draw a class. The same count gives the same class."""
    chance = random.Random(count)
    programs = [one for one in submission_suite.submissions() if one.kind != "hostile" and not one.full]
    return [_learner(number, chance, programs) for number in range(count)]


def _learner(number: int, chance: random.Random, programs: list[Submission]) -> Learner:
    plain = {id: chance.random() < SOLVED for id in ANSWERS[NOTEBOOK]}
    answers = {id: PLAIN[id] if plain[id] else chance.choice(OTHERS)(id) for id in plain}
    return Learner(number, answers, chance.choice(programs) if chance.random() < HANDED_IN else None)


def downloads(course: Course, people: list[Learner], folder: Path) -> list[Path]:
    """Write the class's work in the form of Canvas's downloads, one for each assignment."""
    notebooks, programs = {}, {}
    released = course.folder("release", ".", NOTEBOOK) / f"{NOTEBOOK}.ipynb"
    for learner in people:
        start = f"learner{learner.number:03}_{learner.person}_{10_000 + learner.number}"
        notebook = nbformat.read(released, as_version=4)
        for id, source in learner.answers.items():
            _cell(notebook, id).source = source
        notebooks[f"{start}_{released.name}"] = nbformat.writes(notebook).encode()
        if learner.program:
            programs[f"{start}_my_assignment.zip"] = _packed(learner, folder / "programs")
    return [as_zip(folder / f"{name}.zip", files) for name, files in ((NOTEBOOK, notebooks), (PROGRAM, programs))]


def _packed(learner: Learner, scratch: Path) -> bytes:
    """A learner's program in an archive. A comment makes it differ from those of the others."""
    folder, packed = scratch / learner.student, io.BytesIO()
    learner.program.write(folder)
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(folder.iterdir()):
            mark = f"# {learner.student}\n" if file.suffix == ".py" else ""
            archive.writestr(f"my_assignment/{file.name}", file.read_bytes() + mark.encode())
    return packed.getvalue()


def roster(course: Course, people: list[Learner]) -> str:
    """Return the gradebook that Canvas exports for this class."""
    with course.gradebook as gradebook:
        most = {one.name: one.max_score for one in gradebook.assignments}
    lines = [f"Student,ID,SIS User ID,SIS Login ID,Section,{NOTEBOOK} (1),{PROGRAM} (2)"]
    lines.append(f"    Points Possible,,,,,{most[NOTEBOOK]:g},{most[PROGRAM]:g}")
    lines += [f"Learner {one.number:03},{one.person},,learner{one.number:03},A,," for one in people]
    return "\n".join(lines) + "\n"


class Clock:
    """How long each part took. It is kept in a file, so that an interrupted class goes on.

    A part that was interrupted has the time of its last call only.
    """

    def __init__(self, path: Path):
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    def part(self, name: str, action: Callable[[], object]) -> None:
        """Do a part, unless it was done before, and keep its seconds."""
        if name not in self.seconds:
            started = time.monotonic()
            action()
            self.seconds[name] = round(time.monotonic() - started, 1)
            write_whole(self.path, json.dumps(self.seconds))


def grade(root: Path, students: int, console: Console) -> dict:
    """Take a class the whole way, and return what it took. Nothing that is done is done again."""
    course, people = Course(root / f"course-{students}"), learners(students)
    course.root.mkdir(parents=True, exist_ok=True)
    (course.root / policy.FILE).write_text(f'lessons = ["{NOTEBOOK}", "{PROGRAM}"]')
    clock, table = Clock(course.root / "seconds.json"), root / "gradebook.csv"
    clock.part("release", lambda: release.release(course, SOLUTIONS))
    with tempfile.TemporaryDirectory() as folder:
        sources = downloads(course, people, Path(folder))
        clock.part("take in", lambda: [import_submissions(source, course) for source in sources])
        failures = autograde(course, AutogradeOptions(profile=PROFILE), console).failures
        clock.part("feedback", lambda: release_feedback(course, console))
        clock.part(
            "pack the feedback", lambda: [feedback_package.pack(course, source, course.graded) for source in sources]
        )
        pages = {name for path in (course.root / "export").glob("*.zip") for name in zipfile.ZipFile(path).namelist()}
    table.write_text(roster(course, people))
    clock.part("export", lambda: (export(course), platform_grades.fill(course, "canvas", table)))
    runs = _program_seconds(course)
    found = {(one.student, name): record.load(course.record(one.student, name)) for one in people for name in _of(one)}
    notebooks = sum(one.seconds for one in found.values() if one)
    wrong = [text for one in people for text in _differences(one, found)]
    return {
        "students": students, "submissions": len(found), "seconds": clock.seconds | {"notebooks": round(notebooks, 1)},
        "pages": len(pages), "programs": runs, "failures": failures, "not_as_expected": wrong,
        "rows": len((course.root / "export" / "canvas.csv").read_text().splitlines()) - 2,
    }  # fmt: skip


def _of(learner: Learner) -> list[str]:
    return [NOTEBOOK, PROGRAM] if learner.program else [NOTEBOOK]


def _program_seconds(course: Course) -> list[float]:
    """The seconds that each program's run took, from the batch's results."""
    newest = max(course.harness.glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    return [row["seconds"] for row in json.loads(newest.read_text())["results"]]


def _differences(learner: Learner, found: dict) -> list[str]:
    """Say in what a learner's grades differ from the expected ones."""
    notebook, program = found[learner.student, NOTEBOOK], found.get((learner.student, PROGRAM))
    told = []
    if notebook is None or notebook.points != learner.points:
        given = "no grade" if notebook is None else f"{notebook.points:g}"
        told.append(f"{learner.student}, notebook: {given}, not {learner.points:g}")
    if learner.program and program is None:
        told.append(f"{learner.student}, program: no grade")
    elif learner.program:
        wanted = _expected(learner.program)
        told += [f"{learner.student}, {learner.program.id}: {text}" for text in differences_of(wanted, program, True)]
    return told


def _expected(program: Submission) -> Expected:
    """What a program must be given. Each may miss the target, which depends on the key of the class."""
    wanted = expected_of_program(program)
    points, passed = 0.0 if wanted.points == 0 else None, None if wanted.passed else wanted.passed
    return replace(wanted, points=points, passed=passed, may_lose=wanted.may_lose | {"target"})


def predicted(result: dict, machines: int) -> float:
    """Return the seconds that a class takes at least with so many machines. They share the programs.

    One of them does the rest.
    """
    runs = result["programs"]
    return sum(result["seconds"].values()) + max(sum(runs) / machines, max(runs))


def show(result: dict) -> str:
    """Return the result as tables in Markdown: the time by part, and by the number of machines."""
    parts = {
        "release the assignments": "release", "take in the download": "take in", "grade the notebooks": "notebooks",
        "write the pages of feedback": "feedback", "pack the pages": "pack the feedback", "fill in the table": "export",
    }  # fmt: skip
    lines = ["| part | minutes |", "| --- | --- |"]
    lines += [f"| {told} | {result['seconds'][part] / 60:.1f} |" for told, part in parts.items()]
    lines.append(f"| run {len(result['programs'])} programs | {sum(result['programs']) / 60:.1f} |")
    lines += [
        "",
        f"| {' | '.join(f'{count}' for count in ('machines', *MACHINES))} |",
        f"{'| --- ' * (len(MACHINES) + 1)}|",
    ]
    lines.append(f"| {' | '.join(['minutes', *(f'{predicted(result, one) / 60:.0f}' for one in MACHINES)])} |")
    middle = statistics.median(result["programs"])
    lines += [
        "",
        f"{result['students']} learners, {result['submissions']} submissions; a program's run: {middle:.0f} s",
    ]
    return "\n".join(lines)


def main() -> int:
    """Return the exit status. It is 0 if every grade is as expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="for the class; the same folder goes on with it")
    parser.add_argument("--students", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--save", action="store_true", help="write the result to the committed results")
    parser.add_argument("--show", action="store_true", help="print the committed result")
    args = parser.parse_args()
    if args.show:
        print(show(json.loads(RESULT.read_text())))
        return 0
    if args.folder is None:
        parser.error("name a folder")
    if args.folder.exists() and any(args.folder.iterdir()) and not list(args.folder.glob(f"course-*/{CONFIG}")):
        parser.error(f"{args.folder} is not empty and no class: name another folder")
    if args.students < 2:
        parser.error("a class has at least two students")
    result = grade(args.folder.resolve(), args.students, Console())
    print(show(result), *result["not_as_expected"], sep="\n")
    if args.save:
        results.write(RESULT, result)
    return 1 if result["not_as_expected"] or result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
