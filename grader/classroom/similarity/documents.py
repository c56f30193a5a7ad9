"""The texts of a class that are compared: four-worker programs, and the answers to the exercises of a notebook."""

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.utils import is_solution

import cifar
from grader.classroom.collecting import student_submission
from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course
from grader.submission import notebook

PROGRAM, ANSWERS = "program", "answers"
MAX_CHARACTERS = 30_000  # of a program or a cell; a right program has less than 10,000
STARTER = Path(cifar.__file__).parents[1] / "assignment"  # what learners begin with


@dataclass(frozen=True)
class Document:
    """What a student wrote for an assignment. `kind` is PROGRAM or ANSWERS. `year` names an older course, or is ""."""

    student: str
    assignment: str
    kind: str
    text: str
    year: str = ""

    @property
    def who(self) -> str:
        """The student, and the older course if it is one."""
        return f"{self.student} ({self.year})" if self.year else self.student


def of_course(course: Course, year: str = "") -> list[Document]:
    """The texts of all submissions of a course. Raises CourseError before its first release."""
    course.check()
    ids = {name: _answer_ids(course, name) for name in course.assignments}
    documents = []
    for student, assignment in student_submission.find_submissions(course):
        submission = student_submission.read_submission(course, student, assignment)
        texts = {PROGRAM: _program(submission), ANSWERS: _answers(submission, ids[assignment])}
        documents += [Document(student, assignment, kind, text, year) for kind, text in texts.items() if text]
    return documents


def given_code(course: Course) -> list[str]:
    """What all learners were given: the starter, the course's package and the code of the released notebooks."""
    files = [*STARTER.glob("*.py"), *Path(cifar.__file__).parent.rglob("*.py")]
    notebooks = [_released(course, name) for name in course.assignments]
    cells = [cell.source for one in notebooks for cell in one.cells if cell.cell_type == "code"]
    return [path.read_text(encoding="utf-8") for path in sorted(files)] + cells


def _released(course: Course, assignment: str) -> nbformat.NotebookNode:
    return nbformat.read(course.folder("release", ".", assignment) / f"{assignment}.ipynb", as_version=4)


def _answer_ids(course: Course, assignment: str) -> list[str]:
    cells = _released(course, assignment).cells
    return [cell.metadata.nbgrader.grade_id for cell in cells if is_solution(cell) and cell.cell_type == "code"]


def _program(submission: StudentSubmission) -> str:
    files = [content for name, content in sorted(submission.program.items()) if name.endswith(".py")]
    return tidied("\n\n".join(content.decode(errors="replace") for content in files))


def _answers(submission: StudentSubmission, ids: list[str]) -> str:
    """The answers' cells one after the other, or "" if the notebook cannot be read."""
    try:
        found = notebook.answers(submission.notebook or b"", ids).sources
    except notebook.NotebookError:
        return ""
    return "\n\n".join(tidied(found[id]) for id in ids if id in found)


def tidied(text: str) -> str:
    """The text with one kind of line end and without blank lines at its ends. Several blank lines become one.

    Over many blank lines, the tokenizer needs a time that grows with the square of their number.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
    return "\n".join(kept).strip("\n")[:MAX_CHARACTERS]
