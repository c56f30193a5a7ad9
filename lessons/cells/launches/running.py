"""Runs a lesson script with real workers from a notebook, and shows its output and a live view of the workers.

lines = horovodrun("cifar_base.py", 4, epochs=2, images=4096)
"""

import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tqdm import tqdm

from cifar.support import lane
from cifar.support.horovodrun import TRACEBACK, last_lines, named, running
from lessons.view import watch

SOURCE = Path(__file__).resolve().parents[3] / "source_code"
SINGLE_WORKER = ("cifar_single.py",)  # These scripts do not use Horovod.
TEST_IMAGES = 10_000  # CIFAR-10 has this many.
STALL = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "5", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "20"}  # end what hangs
SHOWN_LINES = 15  # This many of the last lines of a failed run are shown.


class RunError(RuntimeError):
    """A run failed. The message ends with the last lines that its workers wrote."""


def horovodrun(
    script: str, workers: int, *, epochs: int, images: int, batch_size: int | None = None, lr: float | None = None,
    seed: int = 0, device: str = "auto", output: str | Path | None = None,
    environment: dict[str, str] | None = None,
) -> list[dict]:  # fmt: skip
    """Run `source_code/<script>` with `workers` workers, and return the lines of its `metrics.jsonl`, one per epoch.

    An option that is None has the script's default. The number of test images is at most the number of training images,
    because a short run would otherwise spend most of its time on evaluation. Metrics and model are written to `output`,
    by default `runs/<script>-<workers>`. One worker runs as a plain Python program without the launcher. `environment`
    has more variables for the workers, like HOROVOD_TIMELINE. No worker is left running, even after an interrupt.
    Raises RunError if the run fails, and ValueError if the script cannot run with so many workers.
    """
    path = _script(script, workers)
    folder = Path(output or Path("runs") / f"{path.stem}-{workers}")
    options = {
        "epochs": epochs, "images": images, "test-images": min(images, TEST_IMAGES), "batch-size": batch_size, "lr": lr,
        "seed": seed, "device": device, "output-dir": folder,
    }  # fmt: skip
    given = [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]
    launcher = ["horovodrun", "-np", str(workers)] if workers > 1 else []
    line = " ".join([*launcher, "python", f"source_code/{script}", *given])
    print(f"$ {line}", flush=True)
    command = [*launcher, sys.executable, str(path), *given]
    if watch.in_notebook():
        with watch.in_cell(workers, epochs) as view:
            variables = {lane.FOLDER: str(view.folder)} | (environment or {})
            _follow(running(command, workers, variables), workers, line, view.heard)
    else:
        with tqdm(total=epochs, unit="epoch", file=sys.stdout, leave=False, mininterval=0) as bar:
            _follow(
                running(command, workers, environment or {}), workers, line, functools.partial(_move, bar), bar.write
            )
    return [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]


def _script(script: str, workers: int) -> Path:
    """Return the path of a script. Raises ValueError if there is none, or if it cannot run with so many workers."""
    path = SOURCE / script
    if not path.is_file():
        raise ValueError(f"there is no source_code/{script}")
    if workers < 1 or (workers > 1 and script in SINGLE_WORKER):
        raise ValueError(f"{script} cannot run with {workers} workers; with several it needs Horovod")
    return path


def _follow(
    run: AbstractContextManager[subprocess.Popen], workers: int, line: str, heard: Callable[[str], None],
    say: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Say each line of a run until it ends. If it fails, raises RunError with the run's command, `line`."""
    written = []
    with run as process:
        for text in process.stdout:
            written.append(text.rstrip())
            if workers == 1 or TRACEBACK not in written:  # The launcher's own traceback says nothing about the workers.
                say(named(written[-1]))
            heard(text)
    if process.returncode != 0:
        reason = "\n".join(named(text) for text in last_lines(written, SHOWN_LINES))
        raise RunError(f"{line} ended with exit status {process.returncode}; its last lines:\n{reason}")


def _move(bar: tqdm, text: str) -> None:
    """Move the bar if a line tells of an epoch."""
    if epoch := re.search(r"\bepoch (\d+)/", text):
        bar.update(int(epoch[1]) - bar.n)
