"""Builds the learners' notebooks from the lessons' texts: `python -m grader build [--check]`.

A lesson is `solutions/NN_name.py` in jupytext's percent format. `notebooks/NN_name.ipynb` is generated from it, and
changes there are lost. A lesson has these kinds of cells:

    # %% [markdown]               The cell is text. The first cell of this kind opens the lesson.
    # %%                          The cell is code.
    # %% tags=["parameters"]      The cell is code with values that `python -m lessons` replaces by a profile's values.
    # %% tags=["solution"]        The cell is only in the solved notebook. Learners do its task outside the notebook.
    # %% exercise="ring_step"     The cell is the solved function. Its body lies between the lines ### BEGIN SOLUTION
                                  and ### END SOLUTION.
    # %% locked="four_workers"    The cell is code that nbgrader restores if a learner changes it. It is worth 100
                                  points, and earns as many of them as its last expression says.

`{{c04_one}}` in a text is the number with this name in `solutions/numbers.json`.

A line `![](drawings/ring.svg)` in a text is a drawing of `solutions/drawings`. The notebook holds the drawing itself,
so it is there wherever the notebook is opened.

An exercise becomes three cells of nbgrader: the locked statement, the answer, and the locked check on public test
cases. The check earns the exercise's points. No cell id is drawn at random, so two builds write the same bytes.
"""

import ast
import base64
import json
import pprint
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.preprocessors import ClearSolutions

from grader import exercises
from grader.common.errors import GraderError
from grader.exercises import Compared, Exercise
from grader.exercises.scoring import ALONE

REPOSITORY = Path(__file__).resolve().parents[2]
SOLUTIONS, NOTEBOOKS = REPOSITORY / "solutions", REPOSITORY / "notebooks"
ORIGIN = "<!-- Generated from solutions/{} by python -m grader build: a change here is lost. -->\n\n"
DRAWING = re.compile(r"^!\[\]\(drawings/([\w.]+)\)$", re.MULTILINE)  # a drawing has a line of its own
NUMBER = re.compile(r"\{\{(\w+)\}\}")  # a number of `numbers.json`, by its name
STUB = '# Your code here, in place of the next line.\nraise NotImplementedError("it is not written yet")'
MARKERS = ("BEGIN SOLUTION", "END SOLUTION")  # nbgrader removes the lines between these markers
SOLUTION = "solution"  # learners do not get a cell with this tag
LOCKED_POINTS = 100  # points; a locked cell returns the grade of the assignment, which has so many
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


class LessonError(GraderError):
    """The lesson cannot be built. The message is one line that names the file, and the cell if the error is in one."""


def lessons(solutions: Path) -> list[Path]:
    """Return the lessons' texts in their order."""
    return sorted(solutions.glob("[0-9][0-9]_*.py"))


def solved(path: Path) -> NotebookNode:
    """Return the notebook of a lesson with its answers. Raises LessonError."""
    written = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent").cells
    cells = [made for at, cell in enumerate(written, 1) for made in _expanded(cell, _place(path, at))]
    for cell in (cell for cell in cells if cell.cell_type == "markdown"):
        cell.source = NUMBER.sub(lambda found: _number(path, found[1]), cell.source)
        cell.source = DRAWING.sub(lambda found: "![{}]({})".format(*drawing(path, found[1])), cell.source)
    opening = next((cell for cell in cells if cell.cell_type == "markdown"), None)
    if opening is None:
        raise LessonError(f"{_name(path)}: a lesson needs a markdown cell to open with")
    opening.source = ORIGIN.format(path.name) + opening.source
    for position, cell in enumerate(cells):
        cell.id = cell.metadata.get("nbgrader", {}).get("grade_id") or f"{path.name[:2]}-{position:03}"
    _check_ids([(cell.id, path) for cell in cells])
    return new_notebook(cells=cells, metadata=METADATA)


def learner(path: Path) -> NotebookNode:
    """Return the notebook of a lesson without its answers. Raises LessonError."""
    return _without_answers(solved(path))


def text(notebook: NotebookNode) -> str:
    """Return the content of a notebook's file. It is always the same for the same notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, indent=1).rstrip("\n") + "\n"


def built(solutions: Path) -> dict[str, str]:
    """Return the learners' notebooks by file name. Raises LessonError, for example if two cells have one id."""
    notebooks = {path: solved(path) for path in lessons(solutions)}
    _check_ids([(cell.id, path) for path, notebook in notebooks.items() for cell in notebook.cells])
    return {f"{path.stem}.ipynb": text(_without_answers(notebook)) for path, notebook in notebooks.items()}


def build(solutions: Path, notebooks: Path) -> list[str]:
    """Write the notebooks that have changed, and return their names. If it raises LessonError, it writes nothing."""
    changed = [(name, content) for name, content in built(solutions).items() if content != _read(notebooks / name)]
    notebooks.mkdir(exist_ok=True)
    for name, content in changed:
        (notebooks / name).write_text(content, encoding="utf-8")
    return [name for name, _ in changed]


def stale(solutions: Path, notebooks: Path) -> list[str]:
    """Return the names of the notebooks that must be built again or removed. Raises LessonError.

    Such a notebook differs from the one that its lesson gives, or it is missing, or it has no lesson.
    """
    wanted = built(solutions)
    found = {path.name for path in notebooks.glob("[0-9][0-9]_*.ipynb")}
    return sorted(
        {name for name, content in wanted.items() if content != _read(notebooks / name)} | found - set(wanted)
    )


def _read(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _place(path: Path, at: int) -> str:
    return f"{_name(path)}, cell {at}"


def _check_ids(found: list[tuple[str, Path]]) -> None:
    """Raise LessonError if an id occurs twice, because nbgrader expects an exercise in one place only."""
    for id, count in Counter(id for id, _ in found).items():
        if count > 1:
            places = ", ".join(_name(path) for other, path in found if other == id)
            raise LessonError(f"{id.removesuffix('_statement')} is there {count} times: {places}")


def _expanded(cell: NotebookNode, place: str) -> Iterator[NotebookNode]:
    """Yield the cells that a cell of the text becomes. They have no ids yet."""
    # jupytext adds `lines_to_next_cell`, which only jupytext uses.
    metadata = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
    exercise, locked = metadata.pop("exercise", None), metadata.pop("locked", None)
    if (exercise or locked) and cell.cell_type != "code":
        raise LessonError(f"{place}: an exercise, like a locked cell, must be code")
    if exercise:
        yield from _exercise(_known(exercise, place), cell.source, place)
        return
    if any(marker in cell.source for marker in MARKERS):
        raise LessonError(f'{place}: a solution must stand in a cell with exercise="..."')
    if locked:
        metadata["nbgrader"] = _nbgrader(locked, points=LOCKED_POINTS)
    new = new_code_cell if cell.cell_type == "code" else new_markdown_cell
    yield new(cell.source, metadata=metadata)


def drawing(path: Path, name: str) -> tuple[str, str]:
    """Return the words that a drawing has for a screen reader, and its content as an address. Raises LessonError."""
    file = path.parent / "drawings" / name
    if not file.is_file():
        raise LessonError(f"{_name(path)}: there is no drawing drawings/{name}")
    content = file.read_bytes()
    words = ElementTree.fromstring(content).get("aria-label")
    return words, f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"


def _number(path: Path, name: str) -> str:
    """Return a number that a lesson's text names. `lessons.findings` writes the file of numbers from the results."""
    file = path.parent / "numbers.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if name not in known:
        raise LessonError(f"{_name(path)}: there is no number {{{{{name}}}}} in {file.name}")
    return known[name]


def _known(id: str, place: str) -> Exercise:
    try:
        return exercises.get(id)
    except KeyError:
        raise LessonError(f"{place}: there is no exercise {id!r} in grader/exercises") from None


def _exercise(exercise: Exercise, source: str, place: str) -> list[NotebookNode]:
    """Return the three cells of an exercise: the statement, the answer and the check."""
    _check_answer(exercise, source, place)
    check = (
        f'from grader.exercises.public_check import check_public\n\ncheck_public("{exercise.id}", {exercise.function})'
    )
    return [
        new_markdown_cell(_statement(exercise), metadata={"nbgrader": _nbgrader(f"{exercise.id}_statement")}),
        new_code_cell(source, metadata={"nbgrader": _nbgrader(exercise.id, solution=True)}),
        new_code_cell(check, metadata={"nbgrader": _nbgrader(f"{exercise.id}_check", points=exercise.points)}),
    ]


def _check_answer(exercise: Exercise, source: str, place: str) -> None:
    """Raise LessonError unless the solution is marked, and the function's first line remains without the solution."""
    found = re.findall("|".join(MARKERS), source)
    if not found or found != [*MARKERS] * (len(found) // 2):
        raise LessonError(f"{place}: {exercise.id} needs ### BEGIN SOLUTION, and after it ### END SOLUTION")
    wanted = ast.parse(f"def {exercise.signature}: ...").body[0]
    head = f"def {wanted.name}({', '.join(_arguments(wanted))})"
    try:
        left = ast.parse(_cleared(source)).body
    except SyntaxError:
        left = []
    if not any(
        isinstance(one, ast.FunctionDef) and (one.name, _arguments(one)) == (wanted.name, _arguments(wanted))
        for one in left
    ):
        raise LessonError(f"{place}: without its solution {exercise.id} must still have {head}")


def _cleared(source: str) -> str:
    """Return the part of an answer that the learner gets."""
    cell = new_code_cell(source, metadata={"nbgrader": _nbgrader("answer", solution=True)})
    return _without_answers(new_notebook(cells=[cell], metadata=METADATA)).cells[0].source


def without_solution_cells(notebook: NotebookNode) -> NotebookNode:
    """Remove the cells that learners do not get, and return the notebook. The answers stay."""
    notebook.cells = [cell for cell in notebook.cells if SOLUTION not in cell.metadata.get("tags", [])]
    return notebook


def _without_answers(notebook: NotebookNode) -> NotebookNode:
    notebook = without_solution_cells(notebook)
    return ClearSolutions(code_stub={"python": STUB}).preprocess(notebook, {})[0]


def _arguments(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in function.args.args]


def _statement(exercise: Exercise) -> str:
    parts = "\n".join(f"- {name}: {_points(points)}" for name, points in exercise.groups.items())
    return (
        f"### Exercise: {exercise.title} ({_points(exercise.points)})\n\n```python\n{exercise.signature}\n```\n\n"
        f"{exercise.statement}\n\n{_example(exercise)}What the grader tests:\n\n{parts}\n\n{ALONE}"
    )


def _example(exercise: Exercise) -> str:
    """Return the paragraph with what one call returns. A Checked exercise has many right answers, so it has none."""
    if not isinstance(exercise, Compared):
        return ""
    given = ", ".join(_shown(value) for value in exercise.example)
    returned = _shown(exercise.reference(*exercise.example))
    call = f">>> {exercise.function}({given})\n{returned}"
    return f"For example, this is what one call returns:\n\n```python\n{call}\n```\n\n"


def _shown(value: object) -> str:
    """Return a value as Python prints it, with at most six digits of a number."""
    if isinstance(value, list | tuple):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + ", ".join(map(_shown, value)) + right
    if isinstance(value, dict):
        return pprint.pformat(value, width=100, sort_dicts=False, compact=True)
    return f"{float(value):.6g}" if isinstance(value, float) else repr(value)


def _points(count: int) -> str:
    return f"{count} point{'s' * (count != 1)}"


def _nbgrader(id: str, solution: bool = False, points: int | None = None) -> dict:
    """Return nbgrader's metadata of a cell. The cell is an answer or locked, and it is graded if it has points."""
    graded = {} if points is None else {"points": points}
    return {
        "grade": points is not None, "grade_id": id, "locked": not solution, "schema_version": 3, "solution": solution,
        "task": False, **graded,
    }  # fmt: skip
