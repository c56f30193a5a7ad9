"""Executes one solved lesson with papermill, unless this version of it has been executed before.

An executed notebook appears whole or not at all. Its metadata say from which text and parameters it was made.
"""

import ast
import contextlib
import ctypes
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from cifar.support import process_tree
from cifar.support.horovodrun import programs_path
from grader.notebooks import build

CELL_SECONDS = 3600  # No cell of a lesson needs this long. A cell that takes longer hangs.
PR_SET_CHILD_SUBREAPER = 36  # This is Linux's number for the option, from linux/prctl.h.
KEY = "lessons"  # Under this key, the notebook's metadata hold what this module writes.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# These libraries would log kernels that died, and tasks of nbclient that an interrupt left unfinished. This module
# reports such errors itself.
for chatty in ("papermill", "traitlets", "asyncio"):
    logging.getLogger(chatty).setLevel(logging.CRITICAL)
# Kernels inherit these variables. They select this environment's kernel instead of one of the user's, and they put this
# environment's programs first on the path, as after activating it.
os.environ |= {
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PATH": programs_path(),
}


class CellError(Exception):
    """A cell of the lesson named `lesson` failed. The message is one line that names the lesson and the cell."""

    def __init__(self, lesson: str, told: str):
        super().__init__(f"{lesson}, {told}")
        self.lesson = lesson


@dataclass(frozen=True)
class Failed:
    """A lesson that failed when it was last executed.

    `path` is its notebook up to the cell that failed, and `message` is one line that says why.
    """

    path: Path
    message: str


@dataclass(frozen=True)
class Executed:
    """An executed lesson.

    `source` is its text, `path` is its notebook, and `seconds` is how long the execution took. `kept` says that it was
    executed in an earlier run.
    """

    source: Path
    path: Path
    seconds: float
    kept: bool = False


def execute(source: Path, parameters: dict, folder: Path, rerun: bool = False) -> Executed:
    """Execute the solved notebook of a lesson's text. It is written to `folder`, and its cells also run there.

    A notebook that was executed before with the same text and parameters is kept, unless `rerun`. Raises CellError if a
    cell fails. The notebook up to this cell is then kept as `<name>.failed.ipynb`. Raises build.LessonError if the text
    is not a lesson.
    """
    notebook = build.solved(source)
    made_from = _digest(notebook, parameters)
    if not rerun and (earlier := kept(source, folder)) and _note(earlier.path)["made_from"] == made_from:
        return earlier
    path, part = _path(source, folder), folder / f".{source.stem}.part.ipynb"
    folder.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # The earlier notebook was made from another text or other parameters.
    started = time.perf_counter()
    try:
        executed = _run(notebook, _taken(notebook, parameters), source.stem, part)
        seconds = time.perf_counter() - started
        executed.metadata[KEY] = {"made_from": made_from, "parameters": parameters, "seconds": seconds}
        part.write_text(build.text(executed), encoding="utf-8")
        part.replace(path)
        _failed(path).unlink(missing_ok=True)
    except (PapermillExecutionError, CellTimeoutError, DeadKernelError) as error:
        told = _told(error, part, notebook)
        _keep_failed(part, told, _failed(path))
        raise CellError(source.stem, told) from None
    finally:
        part.unlink(missing_ok=True)
    return Executed(source, path, seconds)


def kept(source: Path, folder: Path) -> Executed | None:
    """Return the executed notebook of a lesson in a folder, or None if there is none. It may be of an older text."""
    path = _path(source, folder)
    return Executed(source, path, _note(path)["seconds"], kept=True) if path.is_file() else None


def failed(source: Path, folder: Path) -> Failed | None:
    """Return what a failed lesson has left in a folder, or None if the lesson did not fail at its last execution."""
    path = _failed(_path(source, folder))
    return Failed(path, nbformat.read(path, as_version=4).metadata[KEY]["error"]) if path.is_file() else None


def _keep_failed(part: Path, told: str, path: Path) -> None:
    """Keep a notebook up to the cell that failed, with the error in its metadata."""
    notebook = nbformat.read(part, as_version=4)
    notebook.metadata[KEY] = {"error": told}
    part.write_text(build.text(notebook), encoding="utf-8")
    part.replace(path)


def _path(source: Path, folder: Path) -> Path:
    return folder / f"{source.stem}.ipynb"


def _failed(path: Path) -> Path:
    return path.with_suffix(".failed.ipynb")


def _note(path: Path) -> dict:
    """Return what this module wrote into an executed notebook. If another program wrote the notebook, this is empty."""
    metadata = nbformat.read(path, as_version=4).metadata
    return metadata.get(KEY, {"made_from": None, "parameters": {}, "seconds": 0})


def _digest(notebook: NotebookNode, parameters: dict) -> str:
    return hashlib.sha256(json.dumps([build.text(notebook), parameters], sort_keys=True).encode()).hexdigest()


def _taken(notebook: NotebookNode, parameters: dict) -> dict:
    """The parameters that the lesson's own cell sets. On the page, others would look as if they changed something."""
    cells = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    try:
        nodes = [node for source in cells for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    except SyntaxError:
        return parameters  # the kernel says what is wrong, as of any cell
    names = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    return {name: value for name, value in parameters.items() if name in names}


def _run(notebook: NotebookNode, parameters: dict, name: str, part: Path) -> NotebookNode:
    with _nothing_left():
        return papermill.execute_notebook(
            notebook, part.resolve(), parameters, kernel_name="python3", cwd=part.parent.resolve(),
            execution_timeout=CELL_SECONDS, iopub_timeout=60, extra_arguments=["--log-level=CRITICAL"],
            progress_bar={"desc": name, "leave": False, "disable": None},
        )  # fmt: skip


@contextlib.contextmanager
def _nothing_left() -> Iterator[None]:
    """End all processes that a notebook has started, also workers whose kernel has ended.

    On Linux such workers become children of this process.
    """
    before = set(process_tree.descendants(os.getpid()))
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        process_tree.kill(set(process_tree.descendants(os.getpid())) - before, seconds=10)


def _told(error: Exception, part: Path, notebook: NotebookNode) -> str:
    """Return which cell failed, and the last line of its error. Cells are counted as in the notebook of the text."""
    said = f"{error.ename}: {error.evalue}" if isinstance(error, PapermillExecutionError) else str(error)
    name, *lines = [line for line in COLOURS.sub("", said).splitlines() if line.strip()] or [type(error).__name__]
    last = f"{name.partition(': ')[0]}: {lines[-1].strip()}" if lines else name
    run = [cell for cell in nbformat.read(part, as_version=4).cells if _was_run(cell)]
    ids = [cell.id for cell in notebook.cells]
    at = f"cell {ids.index(run[-1].id) + 1} ({run[-1].id})" if run and run[-1].id in ids else "its parameters"
    return f"{at}: {last}"


def _was_run(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("papermill", {}).get("end_time"))
