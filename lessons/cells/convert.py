"""Lets a learner turn the program of one worker into one of four, step by step, and says what the four workers do now.

begin()   # copies cifar_single.py to my_workers.py
check()   # launches my_workers.py on four workers, for some seconds
"""

import html
import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from IPython.display import HTML, display

from cifar.support.horovodrun import last_lines, named, running
from lessons.cells.observed_worker import Observed
from lessons.cells.running import SHOWN_LINES, SOURCE, RunError

MINE = Path("my_workers.py")  # in the notebook's folder
WORKERS = 4
IMAGES, TEST_IMAGES = 256, 102  # 102 test images do not divide among four workers
OPTIONS = {
    "epochs": 2, "images": IMAGES, "test-images": TEST_IMAGES, "batch-size": 16, "seed": 0, "device": "cpu",
}  # fmt: skip


class Step(NamedTuple):
    """A step of the conversion: what must be true, whether it is, and what the workers do if it is not."""

    goal: str
    met: bool
    seen: str


def begin() -> Path:
    """Copy `cifar_single.py` to `my_workers.py`, unless it is there. Return its path."""
    if not MINE.exists():
        shutil.copy(SOURCE / "cifar_single.py", MINE)
    return MINE


def check(program: Path = MINE) -> list[Step]:
    """Launch the program on four workers, show which steps are done, and return all steps.

    Raises RunError with the last lines of the workers if the program fails.
    """
    with tempfile.TemporaryDirectory(prefix="convert-") as folder:
        workers = _observe(Path(program).resolve(), Path(folder))
        lines = [json.loads(line) for line in (Path(folder) / "out-0" / "metrics.jsonl").read_text().splitlines()]
    found = steps(workers, lines[-1]["test_accuracy"])
    rows = "".join(_row(number, step) for number, step in enumerate(found, 1))
    done = sum(step.met for step in found)
    display(HTML(f"<table><tbody>{rows}</tbody></table><p>{done} of {len(found)} steps are done.</p>"))
    return found


def _observe(program: Path, folder: Path) -> list[Observed]:
    options = [text for name, value in OPTIONS.items() for text in (f"--{name}", str(value))]
    observed = [sys.executable, "-m", "lessons.cells.observed_worker", str(folder), str(program), *options]
    command = ["horovodrun", "-np", str(WORKERS), *observed]
    with running(command, WORKERS, {}) as process:
        written = [line.rstrip() for line in process.stdout]
    if process.returncode != 0:
        reason = "\n".join(named(line) for line in last_lines(written, SHOWN_LINES))
        raise RunError(f"{program.name} failed on {WORKERS} workers; the last lines:\n{reason}")
    return [Observed(**json.loads((folder / f"{rank}.json").read_text())) for rank in range(WORKERS)]


def steps(workers: list[Observed], accuracy: float) -> list[Step]:
    """Judge what was observed. `workers` are in the order of their ranks. `accuracy` (0 to 1) is rank 0's report."""
    return [
        _know_each_other(workers), _shards(workers), _same_weights(workers), _same_start(workers),
        _random_numbers(workers), _test_images(workers, accuracy), _writes(workers),
    ]  # fmt: skip


def _know_each_other(workers: list[Observed]) -> Step:
    alone = sum(not worker.initialised for worker in workers)
    seen = f"{alone} of {len(workers)} programs know nothing of the others. Each trains a network of its own."
    return Step("The four programs know each other.", alone == 0, seen)


def _shards(workers: list[Observed]) -> Step:
    times = Counter(index for worker in workers for index in worker.images[0])
    most, missing = max(times.values(), default=0), IMAGES - len(times)
    seen = f"An image is used up to {most} times in an epoch, and {missing} of {IMAGES} images are not used."
    return Step("In an epoch, each image is used by one worker, once.", most == 1 and missing == 0, seen)


def _same_weights(workers: list[Observed]) -> Step:
    found = len({worker.hashes[-1] for worker in workers})
    seen = f"After the last epoch there are {found} different networks."
    if found == 1 and not _shards(workers).met:
        seen = "All hold equal weights, but only because all do the same work."
    return Step("All workers hold equal weights after each update.", found == 1 and _shards(workers).met, seen)


def _same_start(workers: list[Observed]) -> Step:
    found, sent = len({worker.start_hash for worker in workers}), all(worker.broadcasts for worker in workers)
    seen = f"The workers start with {found} different networks."
    if found == 1:
        seen = "All start with equal weights, but only because all draw the same random numbers."
    return Step("All workers start with the weights of rank 0.", found == 1 and sent, seen)


def _random_numbers(workers: list[Observed]) -> Step:
    found = len({worker.seed for worker in workers})
    seen = "All workers draw the same random numbers."
    if found > 1:
        seen = f"The {len(workers)} workers have {found} different seeds, so some distort alike."
    return Step("Each worker distorts its images with random numbers of its own.", found == len(workers), seen)


def _test_images(workers: list[Observed], accuracy: float) -> Step:
    times = Counter(index for worker in workers for index in worker.test_images)
    counted = len(times) == TEST_IMAGES and max(times.values()) == 1
    right = abs(accuracy - sum(worker.correct for worker in workers) / TEST_IMAGES) < 1e-6
    seen = f"A test image is counted up to {max(times.values(), default=0)} times, by different workers."
    if counted:
        seen = "Each worker counts its own test images, but the accuracy that is reported is not that of all counts."
    return Step("Each test image is counted once, and the accuracy is that of all.", counted and right, seen)


def _writes(workers: list[Observed]) -> Step:
    writing = [rank for rank, worker in enumerate(workers) if {"metrics.jsonl", "model.pt.part"} & set(worker.files)]
    seen = f"Workers {', '.join(map(str, writing))} write metrics.jsonl or model.pt."
    return Step("Only rank 0 writes files.", writing == [0], seen)


def _row(number: int, step: Step) -> str:
    mark, told = ("\N{CHECK MARK}\N{NO-BREAK SPACE}done", "") if step.met else ("not\N{NO-BREAK SPACE}yet", step.seen)
    cells = (str(number), step.goal, mark, told)
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
