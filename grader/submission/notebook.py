"""Reads the answers in a notebook that a learner handed in.

An answer is the source of a cell whose id the grader knows. Nothing in the notebook is executed here. Only these
sources are used, so other changes in the notebook do not matter.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from grader.common.text import quoted

# An honest notebook stays below these limits. They keep the grader fast when a notebook is hostile.
MAX_BYTES = 5 * 2**20  # bytes of the file; its outputs count too
MAX_CELLS = 1000  # cells; a notebook of the course has fewer than a hundred
MAX_SOURCE_BYTES = 64 * 1024  # bytes of one cell's source

Kind = Literal["missing", "duplicated", "renamed", "retyped", "malformed", "too large"]


class NotebookError(Exception):
    """The content is not a notebook. The message is one line for the learner."""


@dataclass(frozen=True)
class Problem:
    """A problem says what is wrong with the cell `id`. The message is one line for the learner."""

    id: str
    kind: Kind
    message: str


@dataclass(frozen=True)
class Answers:
    """These are the sources by cell id, and the problems.

    A cell without a source has a problem. A cell with a source may have a problem too.
    """

    sources: dict[str, str]
    problems: list[Problem]


@dataclass(frozen=True)
class Cell:
    """This is what the grader uses of a handed-in cell. `source` is None if it is not text."""

    grade_id: str
    id: str
    type: str
    source: str | None
    is_answer: bool


def answers(content: bytes, ids: Collection[str]) -> Answers:
    """Return the sources of the code cells `ids` of an `.ipynb` (nbformat 4).

    A cell is found by nbgrader's `grade_id`. If no cell has that `grade_id`, it is found by its cell id. If several
    cells have one id and differ, none of them counts. Raises NotebookError if the content is not a notebook, or if it
    is larger than MAX_BYTES.
    """
    cells = _cells(content)
    sources, problems = {}, []
    for id in ids:
        found = [cell for cell in cells if cell.grade_id == id]
        found = found or [cell for cell in cells if cell.id == id and cell.grade_id not in ids]
        faults = _faults(id, found) if found else [_missing(id, cells, ids)]
        problems += faults
        if all(fault.kind in ("duplicated", "renamed") for fault in faults) and _same(found):
            sources[id] = found[0].source
    return Answers(sources, problems)


def _cells(content: bytes) -> list[Cell]:
    """Return all cells of a notebook. Entries of the list that are not cells are left out."""
    if len(content) > MAX_BYTES:
        raise NotebookError(f"the notebook has more than {MAX_BYTES:,} bytes; clear its outputs and save it again")
    notebook = _json(content)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise NotebookError("the file is not a notebook: it has no cells; hand in the .ipynb that Jupyter saved")
    if notebook.get("nbformat") != 4:
        raise NotebookError("the notebook is not in Jupyter's format 4; open it in JupyterLab and save it again")
    if len(notebook["cells"]) > MAX_CELLS:
        raise NotebookError(f"the notebook has more than {MAX_CELLS:,} cells; take the released notebook again")
    return [_cell(cell) for cell in notebook["cells"] if isinstance(cell, dict)]


def _json(content: bytes) -> object:
    try:  # no number is used, and int() is slow on long numbers
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object, parse_int=float)
    except UnicodeDecodeError:
        raise NotebookError("the notebook is not text in UTF-8; hand in the .ipynb that Jupyter saved") from None
    except json.JSONDecodeError as error:
        raise NotebookError(f"the notebook is not JSON: line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise NotebookError("the notebook is nested too deeply; hand in the .ipynb that Jupyter saved") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object. Raises NotebookError if a name occurs twice, because it is unclear which value counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotebookError("the notebook has an object with a name twice; hand in the .ipynb that Jupyter saved")
    return found


def _cell(raw: dict[str, object]) -> Cell:
    nbgrader = _inner(_inner(raw, "metadata"), "nbgrader")
    is_answer = nbgrader.get("solution") is True
    return Cell(_text(nbgrader, "grade_id"), _text(raw, "id"), _text(raw, "cell_type"), _source(raw), is_answer)


def _inner(outer: dict, name: str) -> dict:
    return inner if isinstance(inner := outer.get(name), dict) else {}


def _text(outer: dict, name: str) -> str:
    return inner if isinstance(inner := outer.get(name), str) else ""


def _source(raw: dict) -> str | None:
    """Return a string, or a list of strings, as one string.

    The result is None for any other value, and for text that a Python source cannot hold.
    """
    source = raw.get("source")
    lines = [source] if isinstance(source, str) else source
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        return None
    text = "".join(lines)
    return None if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text) else text


def _missing(id: str, cells: list[Cell], ids: Collection[str]) -> Problem:
    strangers = sorted({cell.grade_id for cell in cells if cell.is_answer and cell.grade_id not in ids})
    renamed = f" (renamed {' or '.join(map(quoted, strangers[:3]))}?)" if strangers else ""
    return Problem(id, "missing", f"the cell {id} is not there{renamed}; take it from the released notebook again")


def _faults(id: str, found: list[Cell]) -> list[Problem]:
    """Return what is wrong with the cells found for an id."""
    faults = []
    if not _same(found):
        message = f"the cell {id} is there {len(found)} times, not always the same, so none counts; keep one"
        return [Problem(id, "duplicated", message)]
    cell = found[0]
    if len(found) > 1:
        faults.append(
            Problem(id, "duplicated", f"the cell {id} is there {len(found)} times, always the same; keep one")
        )
    if cell.grade_id != id:
        message = f"the cell {id} has lost that name in nbgrader's metadata; it was known by its cell id, and counts"
        faults.append(Problem(id, "renamed", message))
    return faults + _source_faults(id, cell)


def _source_faults(id: str, cell: Cell) -> list[Problem]:
    if cell.type != "code":
        return [Problem(id, "retyped", f"the cell {id} is of type {quoted(cell.type)}; make it a code cell again")]
    if cell.source is None:
        return [Problem(id, "malformed", f"the source of the cell {id} is not text; write it again")]
    if len(cell.source.encode()) > MAX_SOURCE_BYTES:
        return [Problem(id, "too large", f"the cell {id} has more than {MAX_SOURCE_BYTES:,} bytes")]
    return []


def _same(found: list[Cell]) -> bool:
    """Return whether all cells have the same type and source."""
    return len({(cell.type, cell.source) for cell in found}) == 1
