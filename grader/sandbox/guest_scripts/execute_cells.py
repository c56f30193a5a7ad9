"""Runs in the sandbox: executes cells in one kernel, and writes what came out of them. It knows nothing of the course.

`python main.py DATA ANSWER`: reads DATA/cells.json (`cells`: sources; `cell_seconds`), writes ANSWER, a JSON object:
`outputs`, for each cell a list of nbformat's outputs, and `stopped`, why not all cells were executed.
"""

import json
import sys
import tempfile
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

MAX_OUTPUTS = 50  # of a cell
MAX_TEXT = 20_000  # characters of one text
KINDS = ("text/plain", "image/png")


def main(data: Path, answer: Path) -> None:
    """Execute, and write what is to be shown."""
    asked = json.loads((data / "cells.json").read_text())
    notebook, stopped = new_notebook(cells=[new_code_cell(source) for source in asked["cells"]]), ""
    place = tempfile.gettempdir()  # the only folder of the sandbox where sockets can be made
    manager = AsyncKernelManager(transport="ipc", ip=f"{place}/kernel", connection_file=f"{place}/kernel.json")
    client = NotebookClient(
        notebook, km=manager, timeout=asked["cell_seconds"], interrupt_on_timeout=True, allow_errors=True,
        coalesce_streams=True,
    )  # fmt: skip
    try:
        client.execute()
    except Exception as error:
        stopped = f"{type(error).__name__}: {error}".splitlines()[0]
    outputs = [[_short(output) for output in cell.outputs[:MAX_OUTPUTS]] for cell in notebook.cells]
    answer.write_text(json.dumps({"outputs": outputs, "stopped": stopped[:300]}))


def _short(output: dict) -> dict:
    """An output without what would not be shown."""
    if output["output_type"] == "stream":
        return {**output, "text": output["text"][:MAX_TEXT]}
    if output["output_type"] == "error":
        return {**output, "traceback": [line[:MAX_TEXT] for line in output["traceback"][-30:]]}
    return {**output, "metadata": {}, "data": {kind: output["data"].get(kind, "") for kind in KINDS}}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
