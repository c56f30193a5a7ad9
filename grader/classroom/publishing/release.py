"""Releases assignments: each lesson with graded cells becomes an assignment of nbgrader's."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.utils import is_grade

from grader.classroom import policy
from grader.classroom.course import CONFIG, Course, check_api_result
from grader.classroom.grading import gradebook
from grader.common.atomic_write import write_whole
from grader.notebooks import build


def release(course: Course, solutions: Path) -> list[str]:
    """Release the assignments that are new or have changed, and return their names.

    The course's policy says which lessons belong to the course, and when their assignments are due. An assignment that
    was released and does not belong to it any more is withdrawn, unless somebody has submitted it.

    Raises CourseError if nbgrader refuses one, PolicyError, and build.LessonError if a lesson cannot be built.
    """
    texts = build.lessons(solutions)
    course.root.mkdir(parents=True, exist_ok=True)
    for template in (Path(__file__).with_name(CONFIG), Path(policy.__file__).with_name(policy.FILE)):
        if not (course.root / template.name).exists():
            shutil.copy(template, course.root)
    course.create_key()
    names = [path.stem for path in texts]
    rules = policy.load(course.root, [*names, *course.assignments])
    rules.check_lessons(names)
    notebooks = {path.stem: graded_notebook(path) for path in texts if rules.is_chosen(path.stem)}
    sources = {name: build.text(notebook) for name, notebook in notebooks.items() if notebook}
    changed = [name for name, text in sources.items() if not _is_released(course, name, text)]
    for name in changed:
        _release(course, name, sources[name])
    for name in set(names).intersection(course.assignments) - set(sources):
        _withdraw(course, name)
    gradebook.set_due_dates(course, rules)
    return changed


def _withdraw(course: Course, name: str) -> None:
    """Take back an assignment that nobody has submitted. What waits in the exchange was submitted, too."""
    if any(course.root.glob(f"submitted/*/{name}")) or any(_exchange(course, "inbound").glob(f"*+{name}+*")):
        return
    course.api.unrelease(name)
    with course.gradebook as book, contextlib.suppress(MissingEntry):  # an interrupt may have come after it was removed
        book.remove_assignment(name)
    for step in ("source", "release"):
        shutil.rmtree(course.folder(step, ".", name), ignore_errors=True)


def graded_notebook(path: Path) -> NotebookNode | None:
    """A lesson's solved notebook without the cells that students do not get. None if it has no graded cell."""
    notebook = build.without_solution_cells(build.solved(path))
    return notebook if any(map(is_grade, notebook.cells)) else None


def _is_released(course: Course, name: str, text: str) -> bool:
    source = course.folder("source", ".", name) / f"{name}.ipynb"
    outbound = _exchange(course, "outbound") / name
    released = course.folder("release", ".", name) / f"{name}.ipynb"
    return all(map(Path.exists, (outbound, released, source))) and source.read_text(encoding="utf-8") == text


def _exchange(course: Course, direction: str) -> Path:
    """The course's folder in nbgrader's exchange, `inbound` or `outbound`."""
    return Path(course.config.Exchange.root, course.config.CourseDirectory.course_id, direction)


def _release(course: Course, name: str, text: str) -> None:
    """Release an assignment. If that fails, an earlier release stays, so that its submissions can still be graded."""
    source, api = course.folder("source", ".", name), course.api
    with _restored_on_failure(course, source, course.folder("release", ".", name)):
        source.mkdir(parents=True, exist_ok=True)
        write_whole(source / f"{name}.ipynb", text)
        check_api_result(api.generate_assignment(name), f"{name} cannot be made")
        api.unrelease(name)
        check_api_result(api.release_assignment(name), f"{name} cannot be released")


@contextlib.contextmanager
def _restored_on_failure(course: Course, *folders: Path) -> Iterator[None]:
    """Restore folders if the block fails. nbgrader removes an earlier release before it checks a new one."""
    with tempfile.TemporaryDirectory(prefix="release-", dir=course.root) as backup:
        copies = {folder: Path(backup, str(number)) for number, folder in enumerate(folders)}
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
