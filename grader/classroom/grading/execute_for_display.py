"""Executes a student's cells for display, in a kernel in the grader's sandbox. Their outputs earn no points.

The kernel and the program that controls it are both inside the sandbox. One file of limited size comes out of it.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_output

from grader.common.text import for_notebook, one_line
from grader.sandbox import run_in_sandbox
from grader.sandbox.guest_scripts import execute_cells
from grader.sandbox.isolation import Isolation

CELL_SECONDS = 60  # for one cell: an answer needs less than a second, but its imports take longer on a busy machine
START_SECONDS = 60  # for the start of Python and IPython, on a busy machine
TOTAL_SECONDS = 300  # for all cells together
MAX_BYTES = 4 * 2**20  # of all outputs together: an instructor's page must stay small
MAX_LINES = 50  # of a traceback
MAX_REASON = 300  # characters that say why the cells were stopped
PNG = b"\x89PNG\r\n\x1a\n"  # begins every PNG file


def execute(sources: list[str], isolation: type[Isolation]) -> tuple[list[list[NotebookNode]], str]:
    """Each cell's outputs, with plain text and PNG pictures only, and why not all cells were executed, or "".

    Raises isolation.IsolationError if the sandbox cannot be had. Whatever the cells do is a result.
    """
    if not sources:
        return [], ""
    program = {run_in_sandbox.PROGRAM: Path(execute_cells.__file__).read_bytes()}
    request = json.dumps({"cells": sources, "cell_seconds": CELL_SECONDS}).encode()
    try:
        content = run_in_sandbox.answer(
            program, {"cells.json": request}, MAX_BYTES, START_SECONDS + TOTAL_SECONDS, isolation
        )
    except run_in_sandbox.NoAnswerError as error:
        return [[] for _ in sources], f"The cells could not be executed together: {error}."
    return read(content, len(sources))


def read(content: bytes, count: int) -> tuple[list[list[NotebookNode]], str]:
    """What `execute` returns for `count` cells. A cell may have written the content, so that it can be anything."""
    try:
        answer = json.loads(content)
        outputs, stopped = list(answer["outputs"]), str(answer["stopped"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return [[] for _ in range(count)], "What the cells' kernel answered cannot be read."
    cells = [[*_safe_outputs(cell)] for cell in outputs[:count]]
    return cells + [[] for _ in range(count - len(cells))], one_line(stopped, MAX_REASON)


def _safe_outputs(outputs: object) -> Iterator[NotebookNode]:
    """The outputs that are safe on an instructor's page: no markup, no script, and no pictures but PNG."""
    for output in outputs[: execute_cells.MAX_OUTPUTS] if isinstance(outputs, list) else []:
        output = output if isinstance(output, dict) else {}
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            yield new_output("stream", name=name, text=_text(output.get("text")))
        elif kind == "error":
            lines = output.get("traceback")
            traceback = [_text(line) for line in lines[:MAX_LINES]] if isinstance(lines, list) else []
            yield new_output(
                "error", ename=_text(output.get("ename")), evalue=_text(output.get("evalue")), traceback=traceback
            )
        elif kind in ("display_data", "execute_result"):
            yield from _safe_data(output.get("data"))


def _safe_data(data: object) -> Iterator[NotebookNode]:
    """A display's PNG picture, or else its plain text."""
    data = data if isinstance(data, dict) else {}
    picture = data.get("image/png")
    if picture and isinstance(picture, str):
        try:
            content = base64.b64decode(picture, validate=False)
        except (binascii.Error, ValueError):
            content = b""
        if content.startswith(PNG):
            yield new_output("display_data", data={"image/png": base64.b64encode(content).decode()})
            return
    if text := _text(data.get("text/plain")):
        yield new_output("display_data", data={"text/plain": text})


def _text(value: object) -> str:
    """Text for a notebook's output, or "" for a value that is no text."""
    return for_notebook(value[: execute_cells.MAX_TEXT]) if isinstance(value, str) else ""
