"""Lets a learner turn the program of one worker into one of four, step by step, and says what the four workers do now.

begin()   # copies cifar_single.py to my_workers.py
check()   # launches my_workers.py on four workers, for some seconds
"""

import itertools
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from IPython.display import HTML, display

from cifar.support.horovodrun import last_lines, named, running
from lessons.cells.display.tables import table
from lessons.cells.launches.observed_worker import Observed
from lessons.cells.launches.running import SHOWN_LINES, SOURCE, STALL, RunError

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

    Raises RunError if the program fails.
    """
    found = steps(*observe(program))
    done = sum(step.met for step in found)
    display(HTML(f"{steps_table(found)}<p>{done} of {len(found)} steps are done.</p>"))
    return found


def observe(program: Path) -> tuple[list[Observed], float | None]:
    """Launch the program on four workers. Return what each did, and the test accuracy (0 to 1) that rank 0 reported.

    The accuracy is None if rank 0 has written none. Raises RunError if the program fails. The error has the last lines
    of the workers, or Horovod's message on which ranks stall.
    """
    with tempfile.TemporaryDirectory(prefix="convert-") as folder:
        workers = _launch(Path(program).resolve(), Path(folder))
        metrics = Path(folder) / "out-0" / "metrics.jsonl"
        lines = metrics.read_text().splitlines() if metrics.is_file() else []
    return workers, json.loads(lines[-1])["test_accuracy"] if lines else None


def steps_table(found: list[Step], not_met: str = "not yet") -> str:
    """Return the steps as a table in HTML, a row for each. `not_met` is written where a step is not met."""
    return table(_row(number, step, not_met) for number, step in enumerate(found, 1))


def _launch(program: Path, folder: Path) -> list[Observed]:
    options = [text for name, value in OPTIONS.items() for text in (f"--{name}", str(value))]
    observed = [sys.executable, "-m", "lessons.cells.launches.observed_worker", str(folder), str(program), *options]
    command = ["horovodrun", "-np", str(WORKERS), *observed]
    with running(command, WORKERS, STALL) as process:
        written = [line.rstrip() for line in process.stdout]
    if process.returncode != 0:
        stall = _stall(written)
        reason = "\n".join(named(line) for line in stall or last_lines(written, SHOWN_LINES))
        what = "Horovod says which ranks are missing" if stall else "the last lines"
        raise RunError(f"{program.name} failed on {WORKERS} workers; {what}:\n{reason}")
    return [Observed(**json.loads((folder / f"{rank}.json").read_text())) for rank in range(WORKERS)]


def _stall(written: list[str]) -> list[str]:
    """Return the lines in which Horovod says first which ranks stall. They are empty if it does not."""
    for number, line in enumerate(written):
        if "Missing ranks:" in line:
            told = re.sub(r"\[\d{4}-\S+ \S+ \w \S+\] ", "", written[number - 1])
            missing = itertools.takewhile(lambda text: re.search(r":\d+!?: \[", text), written[number + 1 :])
            return [told, line, *missing]
    return []


def steps(workers: list[Observed], accuracy: float | None) -> list[Step]:
    """Judge what was observed. `workers` are in the order of their ranks. `accuracy` (0 to 1) is what rank 0 reported.

    It is None if rank 0 has reported none.
    """
    return [
        _know_each_other(workers), _shards(workers), _same_weights(workers), _same_start(workers),
        _random_numbers(workers), _test_images(workers, accuracy), _writes(workers),
    ]  # fmt: skip


def _know_each_other(workers: list[Observed]) -> Step:
    alone = sum(not worker.initialised for worker in workers)
    seen = f"{alone} of {len(workers)} programs know nothing of the others. Each trains a network of its own."
    return Step("The four programs know each other.", alone == 0, seen)


def _shards(workers: list[Observed]) -> Step:
    times = Counter(index for worker in workers for epoch in worker.images[:1] for index in epoch)
    most, missing = max(times.values(), default=0), IMAGES - len(times)
    seen = f"An image is used up to {most} times in an epoch, and {missing} of {IMAGES} images are not used."
    return Step("In an epoch, each image is used by one worker, once.", most == 1 and missing == 0, seen)


def _same_weights(workers: list[Observed]) -> Step:
    found = len({tuple(worker.hashes[-1:]) for worker in workers})
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


def _test_images(workers: list[Observed], accuracy: float | None) -> Step:
    times = Counter(index for worker in workers for index in worker.test_images)
    counted = len(times) == TEST_IMAGES and max(times.values()) == 1
    share = sum(worker.correct for worker in workers) / TEST_IMAGES
    right = accuracy is not None and abs(accuracy - share) < 1e-6
    most, missing = max(times.values(), default=0), TEST_IMAGES - len(times)
    seen = f"A test image is counted up to {most} times, and {missing} of {TEST_IMAGES} are not counted."
    if counted:
        seen = "Each worker counts its own test images, but the accuracy that is reported is not that of all counts."
    return Step("Each test image is counted once, and the accuracy is that of all.", counted and right, seen)


def _writes(workers: list[Observed]) -> Step:
    writing = [rank for rank, worker in enumerate(workers) if {"metrics.jsonl", "model.pt.part"} & set(worker.files)]
    seen = f"Workers {', '.join(map(str, writing))} write metrics.jsonl or model.pt."
    return Step("Only rank 0 writes files.", writing == [0], seen)


def _row(number: int, step: Step, not_met: str) -> tuple[str, ...]:
    mark, told = ("\N{CHECK MARK} done", "") if step.met else (not_met, step.seen)
    return str(number), step.goal, mark.replace(" ", "\N{NO-BREAK SPACE}"), told
