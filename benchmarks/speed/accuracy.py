"""How long do four workers take to 80, 88 and 90 % test accuracy? Ours, the assignment's, the bootcamp's, a ResNet-18.

Each is a whole program, launched as a learner would, ended after ten minutes: "not reached" is a result. The clock
starts with the first epoch and counts evaluations; processor time counts all workers from their start.
"""

import contextlib
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import psutil

from benchmarks.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.plots import axes
from benchmarks.speed.tables import Table, told
from cifar.launch import running

WORKERS = 4
TARGETS = (0.80, 0.88, 0.90)
AIM_SECONDS = 300
REPOSITORY = Path(__file__).resolve().parents[2]
# The bootcamp's recipe is repaired: its data are sharded, its rate is scaled and warmed up (cifar_warmup.py).
PROGRAMS = {
    "fast": ("cifar_fast.py", [REPOSITORY / "source_code" / "cifar_fast.py"]),
    "assignment": ("the assignment's reference", [REPOSITORY / "solutions" / "assignment" / "train.py"]),
    "bootcamp": ("the bootcamp's, repaired", [REPOSITORY / "source_code" / "cifar_warmup.py", "--epochs", "40"]),
    "resnet18": ("ResNet-18, the common recipe", ["-m", "benchmarks.speed.resnet18"]),
}


def run(arm: str, seed: int, settings: Settings) -> Values:
    """Test accuracy and seconds after each epoch that ended in time, and the processor's seconds, of all workers."""
    with tempfile.TemporaryDirectory(prefix="accuracy-") as folder:
        program = [*PROGRAMS[arm][1], "--seed", seed, "--output-dir", folder, "--images", settings["images"]]
        command = ["horovodrun", "-np", str(WORKERS), sys.executable, *map(str, program)]
        processor = _run(command, settings["limit"])
        path = Path(folder) / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {
        "accuracy": [line["test_accuracy"] for line in lines],
        "seconds": np.cumsum([line["seconds"] for line in lines]).tolist(), "processor": processor,
    }  # fmt: skip


def _run(command: list[str], limit: float) -> float:
    """Run until the end or the limit, which is no failure: what has been done by then counts. Processor seconds."""
    before, used = _waited_for(), 0.0
    try:
        with running(command, WORKERS, {}) as launcher:
            try:
                log, _ = launcher.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                used = _alive(psutil.Process(launcher.pid))
                raise
    except subprocess.TimeoutExpired:
        return used
    if launcher.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{log[-2000:]}")
    return _waited_for() - before


def _waited_for() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _alive(launcher: psutil.Process) -> float:
    """Processor seconds of a process and its descendants, those that have ended included."""
    total = 0.0
    for process in (launcher, *launcher.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def seconds_to(run: Values, target: float) -> float | None:
    """Seconds until the first epoch's end with that accuracy; None if there was none."""
    return next((at for at, found in zip(run["seconds"], run["accuracy"], strict=True) if found >= target), None)


def times(runs: Runs, arm: str, target: float) -> list[float]:
    """Seconds of the runs that reached a target."""
    return [at for run in runs[arm] if (at := seconds_to(run, target)) is not None]


def _said(runs: Runs, arm: str, target: float) -> str:
    found, of = times(runs, arm, target), len(runs[arm])
    if not found:
        return "not reached"
    return told(found, 0) + (f", {len(found)} of {of} runs" if len(found) < of else "")


def table(runs: Runs) -> Table:
    """A row a program."""
    heads = ("program", *(f"seconds to {target:.0%}" for target in TARGETS), "last accuracy, %", "processor seconds")
    rows = [
        (
            name, *(_said(runs, arm, target) for target in TARGETS),
            told([100 * run["accuracy"][-1] for run in runs[arm] if run["accuracy"]] or [0], 1),
            told([run["processor"] for run in runs[arm]], 0),
        )
        for arm, (name, _) in PROGRAMS.items()
    ]  # fmt: skip
    return Table(heads, rows)


def judge(runs: Runs) -> Verdict:
    """Holds if all runs of ours reach the last target within the aim."""
    found = times(runs, "fast", TARGETS[-1])
    met = len(found) == len(runs["fast"]) and max(found) <= AIM_SECONDS
    text = f"{PROGRAMS['fast'][0]} to {TARGETS[-1]:.0%}: {_said(runs, 'fast', TARGETS[-1])} s; the aim is {AIM_SECONDS}"
    return Verdict("holds" if met else "fails", f"{text}.")


def picture(runs: Runs) -> Picture:
    """Test accuracy against time, a line a run."""
    figure, ax = axes("seconds of training and evaluation", "test accuracy (%)")
    for at, (arm, (name, _)) in enumerate(PROGRAMS.items()):
        for number, one in enumerate(runs[arm]):
            accuracy = [100 * found for found in one["accuracy"]]
            ax.plot(one["seconds"], accuracy, color=f"C{at}", linestyle="-", label="" if number else name)
    for target in TARGETS:
        ax.axhline(100 * target, color="#888888", linewidth=0.8, linestyle=":", marker="")
    ax.legend(fontsize=8, loc="lower right")
    parts = "; ".join(f"{name}: {_said(runs, arm, TARGETS[-1])}" for arm, (name, _) in PROGRAMS.items())
    return Picture(
        figure,
        f"Rising lines of test accuracy against time, a colour a program. Seconds to {TARGETS[-1]:.0%}: {parts}.",
        f"Seconds to {TARGETS[-1]:.0%} test accuracy, median and range: {parts}.",
    )


CLAIM = Claim(
    id="accuracy",
    statement="Four workers on two cores reach 90 % test accuracy within five minutes.",
    source="",
    lesson="08_assignment",
    arms=tuple(PROGRAMS),
    seeds=5,
    settings={"images": 50_000, "limit": 600},
    quick={"images": 512, "limit": 20},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few images teach a network nothing.",
    alone=True,
)
