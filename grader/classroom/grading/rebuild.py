"""Rebuilds a submission on the released notebook: its cells, with the learner's sources in the answers' places.

Whatever else was done to the notebook that was handed in, cells deleted, duplicated, renamed or retyped, cannot matter.
"""

from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.utils import is_grade, is_solution

from grader.classroom.collecting.student_submission import Handed
from grader.classroom.course import Course
from grader.common.text import for_markdown
from grader.submission import notebook


@dataclass(frozen=True)
class Rebuilt:
    """The notebook as it is graded. `sources`: answers by exercise; `problems`: what was wrong, by exercise or ""."""

    notebook: NotebookNode
    sources: dict[str, str]
    problems: dict[str, str]


def rebuild(course: Course, handed: Handed) -> Rebuilt:
    """Put the answers that were handed in into the released notebook."""
    released = _released(course, handed.assignment)
    ids = [cell.metadata.nbgrader.grade_id for cell in released.cells if is_solution(cell)]
    sources, problems = {}, {}
    try:
        if handed.notebook is None:
            raise notebook.NotebookError(handed.problem)
        found = notebook.answers(handed.notebook, ids)
        sources, problems = found.sources, {problem.id: problem.message for problem in found.problems}
    except notebook.NotebookError as error:
        problems = {"": str(error)}
    for cell in released.cells:
        if is_solution(cell) and cell.metadata.nbgrader.grade_id in sources:
            cell.source = sources[cell.metadata.nbgrader.grade_id]
    return Rebuilt(released, sources, problems)


def _released(course: Course, assignment: str) -> NotebookNode:
    return nbformat.read(course.folder("release", ".", assignment) / f"{assignment}.ipynb", as_version=4)


def earns_points(course: Course, assignment: str, grade_id: str) -> bool:
    """Whether an assignment has the grade cell `grade_id`."""
    return grade_id in grade_cells(_released(course, assignment))


def answer_cells(rebuilt: NotebookNode) -> list[NotebookNode]:
    """The cells that learners write."""
    return [cell for cell in rebuilt.cells if is_solution(cell)]


def grade_cells(rebuilt: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that earn points, by grade_id."""
    return {cell.metadata.nbgrader.grade_id: cell for cell in rebuilt.cells if is_grade(cell)}


def note(rebuilt: NotebookNode, text: str) -> None:
    """Say something above everything else; `text` is plain and is shown as it is."""
    cell = new_markdown_cell(f"**From the grader:** {for_markdown(text)}")
    cell.id = f"from-the-grader-{len(rebuilt.cells)}"
    rebuilt.cells.insert(0, cell)
