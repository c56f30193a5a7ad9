"""`python -m grader release`: the lessons with graded cells become nbgrader's assignments, and are released."""

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import is_grade
from rich.console import Console

from grader.classroom.course import CONFIG, Course, succeed
from grader.common.atomic_write import write_whole
from grader.common.errors import GraderError
from grader.notebooks import build


def run(args: argparse.Namespace, console: Console) -> int:
    """Exit status: 0, or 2 if something could not be released."""
    course = Course(args.course.resolve())
    try:
        names = release(course, build.SOLUTIONS)
    except GraderError as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    console.print(f"released: {', '.join(names)}" if names else "all assignments are released as they are")
    return 0


def release(course: Course, solutions: Path) -> list[str]:
    """Release what is new or has changed; the names. Raises CourseError, build.LessonError."""
    sources = {path.stem: build.text(found) for path in build.lessons(solutions) if (found := graded(path))}
    course.root.mkdir(parents=True, exist_ok=True)
    if not (course.root / CONFIG).exists():
        shutil.copy(Path(__file__).with_name(CONFIG), course.root)
    course.key  # noqa: B018  it is made with the course
    changed = [name for name, text in sources.items() if not _released(course, name, text)]
    for name in changed:
        _release(course, name, sources[name])
    return changed


def graded(path: Path) -> NotebookNode | None:
    """The solved notebook of a lesson, without the cells that learners do not get; None if it has no graded cell."""
    notebook = build.without_solution_cells(build.solved(path))
    return notebook if any(map(is_grade, notebook.cells)) else None


def _released(course: Course, name: str, text: str) -> bool:
    source = course.folder("source", ".", name) / f"{name}.ipynb"
    outbound = Path(course.config.Exchange.root, course.config.CourseDirectory.course_id, "outbound", name)
    made = course.folder("release", ".", name) / f"{name}.ipynb"
    return all(map(Path.exists, (outbound, made, source))) and source.read_text(encoding="utf-8") == text


def _release(course: Course, name: str, text: str) -> None:
    """Release an assignment; if that fails, an earlier release stays as it was, and its submissions can be graded."""
    source, api = course.folder("source", ".", name), course.api
    with _kept_if_refused(course, source, course.folder("release", ".", name)):
        source.mkdir(parents=True, exist_ok=True)
        write_whole(source / f"{name}.ipynb", text)
        succeed(api.generate_assignment(name), f"{name} cannot be made")
        api.unrelease(name)
        succeed(api.release_assignment(name), f"{name} cannot be released")


@contextlib.contextmanager
def _kept_if_refused(course: Course, *folders: Path) -> Iterator[None]:
    """Put folders back as they were if what follows fails: nbgrader removes a release before it looks at a new one."""
    with tempfile.TemporaryDirectory(prefix="release-", dir=course.root) as place:
        copies = {folder: Path(place, str(at)) for at, folder in enumerate(folders)}
        for folder, copy in copies.items():
            if folder.is_dir():
                shutil.copytree(folder, copy)
        try:
            yield
        except BaseException:
            for folder, copy in copies.items():
                shutil.rmtree(folder, ignore_errors=True)
                if copy.is_dir():
                    copy.replace(folder)
            raise
