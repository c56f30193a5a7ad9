"""Runs a lesson script with real workers from a notebook: its output line by line, a bar over the epochs.

lines = horovodrun("cifar_base.py", 4, epochs=2, images=4096)
"""

import json
import re
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from tqdm import tqdm

from cifar.support.horovodrun import last_lines, read_line, running

SOURCE = Path(__file__).resolve().parents[1] / "source_code"
TEST_IMAGES = 10_000  # that CIFAR-10 has
SHOWN_LINES = 15  # of what a failed run wrote last
TRACEBACK = "Traceback (most recent call last):"  # a worker's has its rank in front


class RunError(RuntimeError):
    """A run that failed; the message ends with the last lines that its workers wrote."""


def horovodrun(
    script: str, workers: int, *, epochs: int, images: int, batch_size: int | None = None, lr: float | None = None,
    seed: int = 0, device: str = "auto", output: str | Path | None = None,
    environment: dict[str, str] | None = None,
) -> list[dict]:  # fmt: skip
    """Run `source_code/<script>` with so many workers; the lines of its `metrics.jsonl`, one for each epoch.

    It is evaluated on no more test images than it trains on, or a short run would mostly evaluate. What is None is left
    to the script. Metrics and model go to `output` (`runs/<script>-<workers>`). One worker needs no launcher: it is
    plain Python. Raises RunError if the run fails, ValueError for more workers than a script can have. `environment`
    are more variables for the workers, like HOROVOD_TIMELINE. However this ends, also by an interrupt, no worker is
    left.
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
    _follow(running(command, workers, environment or {}), workers, epochs, line)
    return [json.loads(text) for text in (folder / "metrics.jsonl").read_text().splitlines()]


def _script(script: str, workers: int) -> Path:
    """The script's path. Raises ValueError if there is no such script, or not for so many workers."""
    path = SOURCE / script
    if not path.is_file():
        raise ValueError(f"there is no source_code/{script}")
    if workers < 1 or (workers > 1 and "import horovod" not in path.read_text()):
        raise ValueError(f"{script} cannot run with {workers} workers; with several it needs Horovod")
    return path


def _follow(run: AbstractContextManager[subprocess.Popen], workers: int, epochs: int, line: str) -> None:
    """Pass a run's output on until it ends. Raises RunError, naming the run by `line`, if it fails."""
    written = []
    with run as process, tqdm(total=epochs, unit="epoch", file=sys.stdout) as bar:
        for text in process.stdout:
            written.append(text.rstrip())
            if workers == 1 or TRACEBACK not in written:  # the launcher's own says nothing of the workers
                bar.write(_named(written[-1]), file=sys.stdout)
            if epoch := re.search(r"\bepoch (\d+)/", text):
                bar.update(int(epoch[1]) - bar.n)
    if process.returncode != 0:
        reason = "\n".join(_named(text) for text in last_lines(written, SHOWN_LINES))
        raise RunError(f"{line} ended with exit status {process.returncode}; its last lines:\n{reason}")


def _named(text: str) -> str:
    """A line of the launcher's output with the worker's rank in front, but not which of its streams it came from."""
    line = read_line(text)
    return text if line.rank is None else f"[{line.rank}] {line.text}"
