"""The assignment from a notebook: the starter copied to a folder of the learner's own, and its grade."""

import json
import shutil
import sys
from pathlib import Path

from IPython.display import HTML, display

from cifar.support.horovodrun import running
from grader.sandbox.run_paths import RunPaths
from lessons.figures import show_file
from lessons.running import SOURCE

STARTER = SOURCE / "assignment"
REFERENCE = SOURCE.parent / "solutions" / "assignment"
PLAIN = {"COLUMNS": "110", "TTY_COMPATIBLE": "0"}  # ipykernel says FORCE_COLOR, but a cell cannot move a cursor up


def begin(folder: str | Path) -> Path:
    """Copy the starter to `folder`, unless there is a program already; returns the program's path."""
    program = Path(folder) / "train.py"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(STARTER / "train.py", program)
    return program


def grade(folder: str | Path, profile: str = "full", output: str | Path = "runs/assignment") -> dict:
    """Run `grader check` on `folder`, its output passed on; returns `report.json`.

    Shows the grade card's link, and after a pass the certificate's preview.
    Raises RuntimeError if the program could not be launched at all (the lines above say why).
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
