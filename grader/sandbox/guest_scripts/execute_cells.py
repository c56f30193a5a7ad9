"""This program runs in the sandbox. It executes cells in one kernel, and writes their outputs.

    python main.py DATA ANSWER

It knows nothing of the course. It reads DATA/cells.json, where `cells` are the cells' sources and `cell_seconds` is the
time limit of a cell. It writes a JSON object to ANSWER. There `outputs` has a list of nbformat's outputs for each cell.
`stopped` says why not all cells were executed, and it is empty if they were.
"""

import json
import sys
import tempfile
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

MAX_OUTPUTS = 50  # outputs; only so many of a cell are kept, because a cell may write without end
MAX_TEXT = 20_000  # characters; a text is cut to this length, because a cell may write without end
KINDS = ("text/plain", "image/png")


def main(data: Path, answer: Path) -> None:
    """Execute the cells, and write the outputs that will be shown."""
    asked = json.loads((data / "cells.json").read_text())
    notebook, stopped = new_notebook(cells=[new_code_cell(source) for source in asked["cells"]]), ""
    place = tempfile.gettempdir()  # in other folders of the sandbox, sockets cannot be made
    manager = AsyncKernelManager(transport="ipc", ip=f"{place}/kernel", connection_file=f"{place}/kernel.json")
    client = NotebookClient(
        notebook, km=manager, timeout=asked["cell_seconds"], interrupt_on_timeout=True, allow_errors=True,
        coalesce_streams=True, iopub_timeout=asked["cell_seconds"],
    )  # fmt: skip
    try:
        client.execute()
    except Exception as error:
        stopped = f"{type(error).__name__}: {error}".splitlines()[0]
    outputs = [[_short(output) for output in cell.outputs[:MAX_OUTPUTS]] for cell in notebook.cells]
    answer.write_text(json.dumps({"outputs": outputs, "stopped": stopped[:300]}))


def _short(output: dict) -> dict:
    """Return an output without the parts that would not be shown."""
    if output["output_type"] == "stream":
        return {**output, "text": output["text"][:MAX_TEXT]}
    if output["output_type"] == "error":
        return {**output, "traceback": [line[:MAX_TEXT] for line in output["traceback"][-30:]]}
    return {**output, "metadata": {}, "data": {kind: output["data"].get(kind, "") for kind in KINDS}}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
