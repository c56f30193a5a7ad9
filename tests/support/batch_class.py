"""This is a class of students for the tests of batches. It is graded in two slots.

Each submission says in JSON what happens when it is graded. With `start`, tests run programs in processes of their own,
and these programs import this module.
"""

import contextlib
import csv
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import psutil
import pytest

from grader.__main__ import main
from grader.batch import dask_cluster, grade_batch, journal
from grader.batch.dask_cluster import Files, Slot, Submission
from grader.batch.names import safe_name
from tests.conftest import REPOSITORY

# Slots start sooner if they need not import this module. With this line, cloudpickle sends them the functions
# themselves. Dask uses cloudpickle for functions without a name, like a lambda.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
CORES = sorted(os.sched_getaffinity(0))
TWO_SLOTS = [Slot(CORES, []), Slot(CORES, [])]
LINES = {"begins": 40, "target": 60}


def tiny(submission: Submission, settings: journal.Settings, folder: Path) -> Files:
    """Grade a submission by doing what its `train.py` says in JSON, and log that it began."""
    orders = json.loads(submission.files["train.py"])
    began = time.time()
    note(orders, submission.name, "began")
    time.sleep(orders.get("seconds", 0))
    if orders.get("kills", 0) >= _begun(orders, submission.name):
        os.kill(os.getpid(), signal.SIGKILL)
    if orders.get("full", 0) >= _begun(orders, submission.name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if orders.get("fails", 0) >= _begun(orders, submission.name):
        raise ZeroDivisionError("a mistake of\nthe grader's [bold]")
    rows = [{"id": name, "points": points, "max": points, "message": ""} for name, points in LINES.items()]
    if not orders.get("right", True):
        rows[1] |= {"points": 0, "message": "Scale the rate."}
    points = sum(row["points"] for row in rows)
    record = {"cores": sorted(os.sched_getaffinity(0)), "pid": os.getpid(), "began": began, "ended": time.time()}
    content = {"submission": submission.name, "passed": points == 100, "points": points, "rows": rows, "record": record}
    return {"report.json": json.dumps(content)}


def note(orders: dict, *words: str) -> None:
    with open(orders["log"], "a") as log:  # noqa: PTH123
        log.write(" ".join([*words, str(os.getpid())]) + "\n")


def _begun(orders: dict, name: str) -> int:
    with open(orders["log"]) as log:  # noqa: PTH123
        return sum(line.startswith(f"{name} began ") for line in log)


class Class:
    """This is a folder of submissions, and the batch that grades them."""

    def __init__(self, root: Path | str):
        self.root = Path(root)
        self.folder, self.output, self.log = self.root / "class", self.root / "graded", self.root / "log"
        self.folder.mkdir(exist_ok=True)
        self.log.touch()

    def add(self, name: str, **orders: object) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "train.py").write_text(json.dumps({"log": str(self.log), **orders}))

    def grade(self, *options: str, does: dask_cluster.Grade = tiny) -> tuple[int, str]:
        """Run `python -m grader batch` with `does` on two slots. Return the exit status and what the terminal shows."""
        command = ["batch", str(self.folder), "--output", str(self.output), *options]
        with self.graded_by(does), contextlib.redirect_stdout(io.StringIO()) as output:
            return main(command), output.getvalue()

    @contextlib.contextmanager
    def graded_by(self, does: dask_cluster.Grade = tiny) -> Iterator[None]:
        """Let a batch grade with `does` on two slots of this machine."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(grade_batch, "grade_submission", lambda *task: does(*task))
            patch.setattr(dask_cluster, "slots_of_this_machine", lambda limit: TWO_SLOTS)
            patch.setenv("COLUMNS", "200")
            yield

    def begun(self) -> list[str]:
        return [line.split()[0] for line in self.log.read_text().splitlines()]

    def pids(self) -> list[int]:
        return [int(line.split()[-1]) for line in self.log.read_text().splitlines()]

    def rows(self) -> list[dict]:
        with (self.output / "results.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def report(self, name: str) -> dict:
        return json.loads((self.output / safe_name(name) / "report.json").read_text())

    def journaled(self) -> list[str]:
        path = self.output / "journal.jsonl"
        return [result.name for result in journal.read(path.read_bytes()).results] if path.exists() else []


def sandboxed(submission: Submission, settings: journal.Settings, folder: Path) -> Files:
    """Grade a submission by sleeping for ever in the sandbox, started from a Dask worker's thread like a real run."""
    from grader.sandbox.bubblewrap import Bubblewrap
    from grader.sandbox.run_paths import RunPaths

    paths = RunPaths(folder)
    paths.source.mkdir()
    paths.data.mkdir()
    paths.challenges.mkdir()
    with Bubblewrap(paths, 1) as isolated:
        isolated.start(["sleep", "86394"])
        note(json.loads(submission.files["train.py"]), submission.name, "began")
        time.sleep(600)
    return {}


PROGRAM = f"""
import os, signal, sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.support import batch_class
signal.signal(signal.SIGINT, signal.default_int_handler)  # a caller in the background has it ignored
"""


def start(program: str, root: Path, *arguments: object, **files: object) -> subprocess.Popen:
    """Start Python with a program in its own process group. If it is killed, its temporary files are below `root`."""
    line = [sys.executable, "-c", PROGRAM + program, *map(str, [root, *arguments])]
    return subprocess.Popen(line, start_new_session=True, text=True, env=os.environ | {"TMPDIR": str(root)}, **files)


def group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def in_group(leader: int) -> list[int]:
    """Return the processes of a group that have not ended."""
    return [
        process.pid
        for process in psutil.process_iter(["status"])
        if group_of(process.pid) == leader and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


BATCH = "sys.exit(batch_class.Class(sys.argv[1]).grade(*sys.argv[2:])[0])"
