"""These functions are for the assignment's notebook. They copy the starter to a folder, and grade that folder."""

import json
import shutil
import sys
from pathlib import Path

from IPython.display import HTML, display

from cifar.support.horovodrun import running
from grader.sandbox.run_paths import RunPaths
from lessons.cells.display.figures import show_file
from lessons.cells.launches.running import SOURCE

STARTER = SOURCE / "assignment"
REFERENCE = SOURCE.parent / "solutions" / "assignment"
# A page has room for 90 columns. ipykernel sets FORCE_COLOR, so Rich would move the cursor up, which a cell cannot do.
PLAIN = {"COLUMNS": "90", "TTY_COMPATIBLE": "0"}


def begin(folder: str | Path) -> Path:
    """Copy the starter to `folder`, unless the folder already has a program. Return the path of the program."""
    program = Path(folder) / "train.py"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(STARTER / "train.py", program)
    return program


def grade(folder: str | Path, profile: str = "full", output: str | Path = "runs/assignment") -> dict:
    """Run `grader check` on `folder`, print its output, and return the content of `report.json`.

    A link to the grade card is shown, and after a pass the preview of the certificate. Raises RuntimeError if the
    grader did not write a report. Its printed output then says why.
    """
    report, preview = Path(output) / "report.json", RunPaths(Path(output)).preview
    for earlier in (report, preview):
        earlier.unlink(missing_ok=True)
    command = [sys.executable, "-m", "grader", "check", str(folder), "--profile", profile, "--output", str(output)]
    print(f"$ python -m grader {' '.join(command[3:])}", flush=True)
    with running(command, 1, PLAIN) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
    if not report.exists():
        raise RuntimeError(f"{folder} was not graded: the last line above says why")
    display(HTML(f'<p>The grade card, with pictures of the run: <a href="{output}/report.html">report.html</a></p>'))
    if preview.exists():
        show_file(preview, "The preview of a certificate.", "A preview: your instructor's grading signs the real one.")
    return json.loads(report.read_text())
