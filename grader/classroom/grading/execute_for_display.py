"""Executes a learner's cells for display, in a kernel in the grader's sandbox. What comes out decides nothing.

The kernel and the program that speaks with it are both inside: what reaches us is one file of a known size at most.
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
from grader.sandbox.guest_scripts import execute_cells as inside
from grader.sandbox.isolation import Isolation

CELL_SECONDS = 20
START_SECONDS = 60  # for Python and IPython, on a busy machine
TOTAL_SECONDS = 120
MAX_BYTES = 4 * 2**20  # of all outputs together
MAX_LINES = 50  # of a traceback
PNG = b"\x89PNG\r\n\x1a\n"


def execute(sources: list[str], isolation: type[Isolation]) -> tuple[list[list[NotebookNode]], str]:
    """Each cell's outputs, plain text and PNG pictures alone, and why not all were executed, or "".

    Raises isolation.IsolationError if the sandbox cannot be had; whatever the cells do is a result.
    """
    if not sources:
        return [], ""
    program = {run_in_sandbox.PROGRAM: Path(inside.__file__).read_bytes()}
    asked = json.dumps({"cells": sources, "cell_seconds": CELL_SECONDS}).encode()
    try:
        content = run_in_sandbox.answer(
            program, {"cells.json": asked}, MAX_BYTES, START_SECONDS + TOTAL_SECONDS, isolation
        )
    except run_in_sandbox.NoAnswerError as error:
        return [[] for _ in sources], f"The cells could not be executed together: {error}."
    return read(content, len(sources))


def read(content: bytes, count: int) -> tuple[list[list[NotebookNode]], str]:
    """What `execute` returns for `count` cells, from an answer that a cell may have written: whatever it is."""
    try:
        found = json.loads(content)
        outputs, stopped = list(found["outputs"]), str(found["stopped"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return [[] for _ in range(count)], "What the cells' kernel answered cannot be read."
    shown = [[*_cleaned(output)] for output in outputs[:count]]
    return shown + [[] for _ in range(count - len(shown))], one_line(stopped, 300)


def _cleaned(outputs: object) -> Iterator[NotebookNode]:
    """The outputs that may be shown on an instructor's page: no markup, no script, no drawing but PNG."""
    for output in outputs[: inside.MAX_OUTPUTS] if isinstance(outputs, list) else []:
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
            yield from _shown(output.get("data"))


def _shown(data: object) -> Iterator[NotebookNode]:
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
    """Text without control characters but line ends, tabs and what colours it."""
    return for_notebook(value[: inside.MAX_TEXT]) if isinstance(value, str) else ""
