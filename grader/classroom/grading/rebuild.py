"""Rebuilds a submission on the released notebook: its cells, with the student's sources in the places of the answers.

Nothing else of the submitted notebook can matter. Its cells may be deleted, duplicated, renamed or of another type.
"""

from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.utils import is_grade, is_solution

from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course
from grader.common.text import for_markdown
from grader.submission import notebook


@dataclass(frozen=True)
class RebuiltNotebook:
    """The notebook as it is graded.

    `sources` holds the answers by exercise. `problems` says what was wrong, by exercise, or under "" for the whole.
    """

    notebook: NotebookNode
    sources: dict[str, str]
    problems: dict[str, str]


def rebuild(course: Course, submission: StudentSubmission) -> RebuiltNotebook:
    """Put the submitted answers into the released notebook."""
    released = _released(course, submission.assignment)
    ids = [cell.metadata.nbgrader.grade_id for cell in released.cells if is_solution(cell)]
    sources, problems = {}, {}
    try:
        if submission.notebook is None:
            raise notebook.NotebookError(submission.problem)
        answers = notebook.answers(submission.notebook, ids)
        sources, problems = answers.sources, {problem.id: problem.message for problem in answers.problems}
    except notebook.NotebookError as error:
        problems = {"": str(error)}
    for cell in released.cells:
        if is_solution(cell) and cell.metadata.nbgrader.grade_id in sources:
            cell.source = sources[cell.metadata.nbgrader.grade_id]
    return RebuiltNotebook(released, sources, problems)


def _released(course: Course, assignment: str) -> NotebookNode:
    return nbformat.read(course.folder("release", ".", assignment) / f"{assignment}.ipynb", as_version=4)


def earns_points(course: Course, assignment: str, grade_id: str) -> bool:
    """Whether an assignment has the grade cell `grade_id`."""
    return grade_id in grade_cells(_released(course, assignment))


def answer_cells(rebuilt: NotebookNode) -> list[NotebookNode]:
    """The cells that students write."""
    return [cell for cell in rebuilt.cells if is_solution(cell)]


def grade_cells(rebuilt: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that earn points, by grade_id."""
    return {cell.metadata.nbgrader.grade_id: cell for cell in rebuilt.cells if is_grade(cell)}


def add_note(rebuilt: NotebookNode, text: str, id: str | None = None) -> None:
    """Add a note at the top of a notebook. The text is shown as it is, without markup. It replaces a note of its id."""
    cell = new_markdown_cell(f"**From the grader:** {for_markdown(text)}")
    cell.id = id or f"from-the-grader-{len(rebuilt.cells)}"
    rebuilt.cells = [cell, *(other for other in rebuilt.cells if other.id != cell.id)]
