"""A made-up class, graded end to end.

`python -m tests.support.synthetic_class DIR --students 30` prints what was expected and what was given.

Each learner hands in three assignments: two notebooks with exercises, and the four-worker program. A learner is put
together from parts: what the learner does with a notebook, the sources of its cells, and the program. Each part says
what it must earn. The programs come from the suite of submissions, and they run on the fast profile.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from rich.console import Console
from rich.table import Table

from grader import exercises
from grader.classroom.course import CONFIG, Course
from grader.classroom.grading import record
from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.grading.record import FOUR_WORKERS, Record
from grader.classroom.publishing import release
from grader.grading.rubric import RUBRIC
from grader.notebooks.build import SOLUTIONS
from tests.grader.exercises.test_sandboxed import PLAIN
from tests.support import submission_suite
from tests.support.submission_suite import Submission

NOTEBOOKS = ("03_data_parallelism_by_hand", "06_techniques")
PROGRAM = "08_assignment"
ANSWERS = {
    NOTEBOOKS[0]: ("average_gradients", "ring_step", "ring_plan", "traffic"),
    NOTEBOOKS[1]: ("warmup_factor", "rates_to_try", "trust_ratio"),
}
PROFILE = "fast"
# The fast profile's target holds for known keys only: its runs are short, so another key can cost a right program the
# target. `benchmarks calibrate` has measured this key.
KEY = "calibration-0"

STUB = "raise NotImplementedError('it is not written yet')"
SECRETS = """
import os, subprocess
found = []
for folder, inner, files in os.walk("/"):
    inner[:] = [name for name in inner if name not in ("usr", "proc", "sys", "site-packages")]
    ours = folder.endswith(("solutions", "records"))
    found += [folder + "/" + name for name in files if name == "gradebook.db" or ours]
print("FOUND", found, os.environ.get("HOME"), "<script>alert(1)</script>", "\\x1b]0;title\\x07\\x1b[2J")
try:
    print("NETWORK", subprocess.run(["getent", "hosts", "example.com"], capture_output=True, timeout=5).stdout)
except Exception as error:
    print(type(error).__name__)
"""


@dataclass(frozen=True)
class Learner:
    """A learner hands in two notebooks and a program.

    `cells` has the sources by exercise, where they are not the plain right answers. `earned` has the points of the
    exercises that do not earn all points. `handle` changes each notebook before it is handed in. `program` names a
    submission of the suite.
    """

    about: str
    cells: dict[str, str]
    earned: dict[str, float]
    handle: Callable[[NotebookNode, Path], None] | None = None
    program: str | None = "right/reference"


def _everywhere(source: Callable[[str], str]) -> dict[str, str]:
    return {id: source(id) for ids in ANSWERS.values() for id in ids}


def _nothing(*ids: str) -> dict[str, float]:
    return dict.fromkeys(ids or [id for ids in ANSWERS.values() for id in ids], 0.0)


def _cell(notebook: NotebookNode, id: str) -> NotebookNode | None:
    return next((cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == id), None)


def _save(notebook: NotebookNode, path: Path) -> None:
    path.write_text(nbformat.writes(notebook), encoding="utf-8")


def _garbage(notebook: NotebookNode, path: Path) -> None:
    """Write garbage. The time stamp is a pipe, on which nbgrader's pages would wait for ever."""
    path.write_bytes(b"\x80\x04not a notebook\x00" * 1000)
    (path.parent / "timestamp.txt").unlink()
    os.mkfifo(path.parent / "timestamp.txt")


def _huge(notebook: NotebookNode, path: Path) -> None:
    path.write_bytes(b'{"cells": [' + b'"x",' * 2_000_000 + b'""]}')


def _absent(notebook: NotebookNode, path: Path) -> None:
    pass


def _link(notebook: NotebookNode, path: Path) -> None:
    path.symlink_to(path.parents[3] / "gradebook.db")


def _pipe(notebook: NotebookNode, path: Path) -> None:
    os.mkfifo(path)


def _duplicated(notebook: NotebookNode, path: Path) -> None:
    """Write each answer twice. The two are equal, so the answer counts."""
    notebook.cells += [nbformat.from_dict(cell) for cell in notebook.cells if cell.metadata.get("nbgrader")]
    _save(notebook, path)


def _contradicting(notebook: NotebookNode, path: Path) -> None:
    """Write two different answers with one name. Neither of them counts."""
    cell = _cell(notebook, "ring_step") or _cell(notebook, "trust_ratio")
    if cell:
        notebook.cells.append(nbformat.from_dict({**cell, "source": cell.source + "\n# another"}))
    _save(notebook, path)


def _deleted(notebook: NotebookNode, path: Path) -> None:
    """Delete the answer of one exercise and all locked cells."""
    gone = {"ring_step", "trust_ratio"}
    kept = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") not in gone]
    notebook.cells = [cell for cell in kept if not cell.metadata.get("nbgrader", {}).get("locked")]
    _save(notebook, path)


def _retyped(notebook: NotebookNode, path: Path) -> None:
    cell = _cell(notebook, "ring_step") or _cell(notebook, "trust_ratio")
    if cell:
        cell.cell_type = "markdown"
        cell.pop("outputs", None), cell.pop("execution_count", None)
    _save(notebook, path)


def _without_metadata(notebook: NotebookNode, path: Path) -> None:
    """Remove nbgrader's metadata, as some editors do. The cells are then found by their ids."""
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
    _save(notebook, path)


def _own_checks(notebook: NotebookNode, path: Path) -> None:
    """Change the locked checks so that they give all points, and raise these points."""
    for cell in notebook.cells:
        found = cell.metadata.get("nbgrader", {})
        if found.get("grade"):
            cell.source, found["points"] = "1000", 1000
    _save(notebook, path)


def _always_0(id: str) -> str:
    return f"def {exercises.get(id).function}(*anything):\n    return 0"


HOG = "hog = []\nwhile True:\n    hog.append(bytearray(10**8))"
HALF = _nothing("ring_step", "trust_ratio")
LEARNERS = (
    Learner("all right", {}, {}),
    Learner("two answers not written, a mistake in the program", {"ring_step": STUB, "trust_ratio": STUB}, HALF,
            program="mistakes/no_warmup"),
    Learner("looks for secrets everywhere", {"ring_step": SECRETS + PLAIN["ring_step"]}, {},
            program="hostile/reads_everything"),
    Learner("garbage for notebooks, no program", {}, _nothing(), _garbage, program=None),
    Learner("a cell that kills its process", {"ring_step": "import os\nos.kill(os.getpid(), 9)"}, _nothing("ring_step"),
            program="hostile/kills_everything"),
    Learner("its own checks, and invented metrics", {"trust_ratio": STUB, "ring_step": STUB}, HALF, _own_checks,
            program="hostile/invented_metrics"),
    Learner("every cell twice", {}, {}, _duplicated, program="right/torch_dataloader"),
    Learner("contradicts itself", {}, HALF, _contradicting, program="mistakes/no_broadcast"),
    Learner("threw cells away", {}, HALF, _deleted, program="mistakes/every_rank_saves"),
    Learner("made an answer a text", {}, HALF, _retyped, program="mistakes/hits_of_rank_0"),
    Learner("lost nbgrader's metadata", {}, {}, _without_metadata, program="right/lamb"),
    Learner("a huge notebook", {}, _nothing(), _huge, program="mistakes/syntax_error"),
    Learner("no notebook", {}, _nothing(), _absent, program="right/accumulation"),
    Learner("a link to the gradebook", {}, _nothing(), _link, program="hostile/endless_loop"),
    Learner("a pipe for a notebook", {}, _nothing(), _pipe, program="hostile/fork_bomb"),
    Learner("an endless loop", {"traffic": "while True:\n    pass"}, _nothing("traffic"), program="hostile/memory_hog"),
    Learner("endless output", {"traffic": "while True:\n    print('x' * 10_000)"}, _nothing("traffic"),
            program="hostile/endless_output"),
    Learner("takes all memory", {"traffic": HOG}, _nothing("traffic"), program="hostile/full_disk"),
    Learner("answers the same always", _everywhere(_always_0), _nothing(), program="hostile/embedded_weights"),
    Learner("writes to stderr", {"traffic": "import sys\nprint('a warning', file=sys.stderr)\n" + PLAIN["traffic"]}, {},
            program="right/progress_bar"),
    Learner("writes markup", {"traffic": "print('<script>alert(1)</script>')\n" + PLAIN["traffic"]}, {},
            program="hostile/markup"),
    Learner("writes into other folders", {}, {}, program="hostile/writes_elsewhere"),
    Learner("wants the network", {}, {}, program="hostile/network"),
    Learner("its program hangs", {}, {}, program="mistakes/broadcasts_on_rank_0"),
    Learner("leaves a daemon", {}, {}, program="hostile/daemon"),
    Learner("a syntax error", {"trust_ratio": "def trust_ratio("}, _nothing("trust_ratio"),
            program="mistakes/wrong_file_name"),
    Learner("no distributed optimizer", {}, {}, program="mistakes/no_distributed_optimizer"),
    Learner("scales the rate twice", {}, {}, program="mistakes/rate_scaled_twice"),
    Learner("always the same order", {}, {}, program="mistakes/same_order_every_epoch"),
    Learner("a pickle bomb", {}, {}, program="hostile/pickle_bomb"),
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """This is the grade that a submission must be given.

    `points` is None if they are not certain. `lost` and `may_lose` are the lines of a program that lose or may lose
    points.
    """

    points: float | None
    lost: frozenset[str] = frozenset()
    may_lose: frozenset[str] = frozenset()
    passed: bool | None = None


def name(number: int) -> str:
    """Return a student's id."""
    return f"learner-{number:02}"


def hand_in(course: Course, number: int) -> None:
    """Put what a learner hands in into `submitted/`."""
    learner = LEARNERS[number % len(LEARNERS)]
    for assignment in (*NOTEBOOKS, PROGRAM):
        folder = course.folder("submitted", name(number), assignment)
        folder.mkdir(parents=True)
        _hand_in_notebook(course, learner, assignment, folder)
    if learner.program:
        program = next(one for one in submission_suite.submissions() if one.id == learner.program)
        program.write(folder / "my_assignment")


def _hand_in_notebook(course: Course, learner: Learner, assignment: str, folder: Path) -> None:
    path = course.folder("release", ".", assignment) / f"{assignment}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for id in ANSWERS.get(assignment, ()):
        _cell(notebook, id).source = learner.cells.get(id, PLAIN[id])
    (folder / "timestamp.txt").write_text("2026-01-01 12:00:00.000000 UTC")
    (learner.handle or _save)(notebook, folder / path.name)


def expected(number: int, assignment: str) -> Expected:
    """Return what a learner must be given for an assignment."""
    learner = LEARNERS[number % len(LEARNERS)]
    if assignment != PROGRAM:
        ids = ANSWERS[assignment]
        return Expected(sum(learner.earned.get(id, exercises.get(id).points) for id in ids))
    if learner.program is None:
        return Expected(0, passed=False)
    return expected_of_program(next(one for one in submission_suite.submissions() if one.id == learner.program))


def expected_of_program(program: Submission) -> Expected:
    """Return what a program of the suite must be given on the profile of a class."""
    lost, may = submission_suite.every(program.lost), submission_suite.every(program.may_lose)
    # `lost` holds for the brief profile, which has no target.
    if program.brief and "*" not in program.lost:
        may |= {"target"}
    # The brief profile has few updates, and a class has more. There a program that stops early has not come to the end
    # of its schedule, and has written no model and no accuracies. More updates also show more of what its workers do.
    if program.brief and "ends" in lost:
        may |= {"checkpoint", "metrics", "rate", "shards"}
    points = 0.0 if program.refused or program.lost == ["*"] else 100.0 if not lost and not may else None
    passes = None if program.brief and program.passes else program.passes
    return Expected(points, frozenset(lost), frozenset(may), passes)


def differences(course: Course, number: int, assignment: str) -> list[str]:
    """Say in what a given grade differs from the expected one."""
    wanted, found = expected(number, assignment), record.load(course.record(name(number), assignment))
    if found is None:
        return ["no grade"]
    return differences_of(wanted, found, assignment == PROGRAM)


def differences_of(wanted: Expected, found: Record, is_program: bool) -> list[str]:
    """Say in what a given grade differs from the expected one. A program's lines are compared, too."""
    told = []
    if wanted.points not in (None, found.points):
        told.append(f"{found.points:g} points, not {wanted.points:g}")
    if wanted.passed not in (None, found.passed):
        told.append("passed" if found.passed else "not passed")
    lost = lost_lines(found)
    if is_program and wanted.points is None and not wanted.lost <= lost <= wanted.lost | wanted.may_lose:
        told.append(f"loses {', '.join(sorted(lost)) or 'nothing'}")
    return told


def lost_lines(found: Record) -> set[str]:
    """Return the rubric lines of a program that have not got all points."""
    ids = {line.asks: line.id for line in RUBRIC}
    program = [line for line in found.lines if line.cell == FOUR_WORKERS and line.name in ids]
    return {ids[line.name] for line in program if line.points < line.max}


def make(root: Path, students: int) -> Course:
    """Make a new course in `root`, release it, and hand in what a class hands in."""
    course = Course(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / "key").write_text(KEY)
    release.release(course, SOLUTIONS)
    for number in range(students):
        hand_in(course, number)
    return course


def show(course: Course, students: int, console: Console) -> list[str]:
    """Print each submission's expected and given points and its time. Return what is not as expected."""
    table, wrong, seconds = Table("Student", "does", "assignment", "expected", "given", "s"), [], []
    for number in range(students):
        for assignment in (*NOTEBOOKS, PROGRAM):
            found, wanted = record.load(course.record(name(number), assignment)), expected(number, assignment)
            wrong += [f"{name(number)}, {assignment}: {text}" for text in differences(course, number, assignment)]
            seconds.append(found.seconds if found else 0)
            lost = f"loses {', '.join(sorted(wanted.lost))}" if wanted.lost else "may lose some"
            text = lost if wanted.points is None else f"{wanted.points:g}"
            given = f"{found.points:g}" if found else "none"
            about = LEARNERS[number % len(LEARNERS)].about
            table.add_row(name(number), about, assignment[:2], text, given, f"{seconds[-1]:.1f}")
    console.print(table)
    console.print(f"notebooks: {sum(seconds) / len(seconds):.1f} s a submission, without the programs' runs")
    return wrong


def main() -> int:
    """Return the exit status. It is 0 if every grade is as expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for the course; an earlier one there is removed")
    parser.add_argument("--students", type=int, default=len(LEARNERS), help=f"1 to {len(LEARNERS)} (default: all)")
    args, console, started = parser.parse_args(), Console(), time.monotonic()
    if not 1 <= args.students <= len(LEARNERS):
        parser.error(f"there are {len(LEARNERS)} made-up learners")
    if args.folder.exists() and not (args.folder / CONFIG).exists() and any(args.folder.iterdir()):
        parser.error(f"{args.folder} is not empty and no course: name another folder")
    shutil.rmtree(args.folder, ignore_errors=True)
    course = make(args.folder.resolve(), args.students)
    failures = autograde(course, AutogradeOptions(profile=PROFILE), console).failures
    wrong = show(course, args.students, console)
    minutes = (time.monotonic() - started) / 60
    console.print(
        f"{3 * args.students} submissions in {minutes:.1f} min; not as expected: {'; '.join(wrong) or 'none'}"
    )
    return 1 if wrong or failures else 0


if __name__ == "__main__":
    sys.exit(main())
