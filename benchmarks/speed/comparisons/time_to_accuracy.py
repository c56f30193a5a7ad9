"""How long do four workers take to reach 80, 88 and 90 % test accuracy?

Compared are our fast program, the assignment's reference, the bootcamp's repaired recipe, and a ResNet-18. Each is a
whole program, launched as a learner launches it. It is ended after ten minutes, and "not reached" is a result too. Wall
time, and the processor time of all its processes, count from the launch. Twice a second the measurement looks whether
the program has recorded another evaluation.
"""

import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import psutil

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import GREY, LOOKS, axes
from benchmarks.speed.tables import Table, told
from cifar.support.horovodrun import running
from grader.common.contract import WORKERS

TARGETS = (0.80, 0.88, 0.90)  # test accuracies (0 to 1)
AIM_SECONDS = 300  # from the launch until our program reaches the last target: five minutes
LIMIT_SECONDS = 600  # from the launch: a program is then ended, because a learner would not wait longer
LOOK_SECONDS = 0.5  # between two looks at the program's records: a time is measured with this error at most
REPOSITORY = Path(__file__).resolve().parents[3]
# The bootcamp's recipe is repaired: its data are sharded, its rate is scaled and warmed up (cifar_warmup.py).
PROGRAMS = {
    "fast": ("cifar_fast.py", [REPOSITORY / "source_code" / "cifar_fast.py"]),
    "assignment": ("the assignment's reference", [REPOSITORY / "solutions" / "assignment" / "train.py"]),
    "bootcamp": ("the bootcamp's, repaired", [REPOSITORY / "source_code" / "cifar_warmup.py", "--epochs", "40"]),
    "resnet18": ("ResNet-18, the common recipe", ["-m", "benchmarks.speed.rivals.resnet18"]),
}


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the test accuracy (0 to 1) and the wall and processor seconds since the launch, for each evaluation."""
    options = {"seed": seed, "images": settings["images"], "device": settings["device"]}
    with tempfile.TemporaryDirectory(prefix="accuracy-") as folder:
        program = launched(PROGRAMS[variant][1], options | {"output-dir": folder}, WORKERS)
        return _watch(program, Path(folder) / "metrics.jsonl", settings["limit"])


def launched(program: list, options: dict[str, object], workers: int) -> AbstractContextManager[subprocess.Popen]:
    """A context manager that starts a program on `workers` workers when it is entered.

    `program` holds Python's arguments, and `options` the program's options by name.
    """
    given = (f"--{name}={value}" for name, value in options.items())
    return running(["horovodrun", "-np", str(workers), sys.executable, *map(str, program), *given], workers, {})


def finished(program: list, options: dict[str, object], workers: int, limit: float) -> list[dict]:
    """Run a program to its end. Returns the lines of its `metrics.jsonl`, one per epoch.

    Raises RuntimeError if the program fails, and subprocess.TimeoutExpired after `limit` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="finished-") as folder:
        with launched(program, options | {"output-dir": folder}, workers) as launcher:
            log, _ = launcher.communicate(timeout=limit)
        if launcher.returncode != 0:
            raise _failed(launcher, log)
        return [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]


def _failed(launcher: subprocess.Popen, log: str) -> RuntimeError:
    return RuntimeError(f"{' '.join(launcher.args)} failed:\n{log[-2000:]}")


def _watch(program: AbstractContextManager[subprocess.Popen], metrics: Path, limit: float) -> Values:
    """Run a program until it ends or reaches the limit of `limit` seconds.

    Reaching the limit is no failure: the evaluations until then count. Raises RuntimeError if the program fails.
    """
    found = {"accuracy": [], "seconds": [], "processor": []}
    before, started = _waited_for(), time.perf_counter()
    with contextlib.suppress(TimeoutError), program as launcher:
        while launcher.returncode is None:
            try:
                log, _ = launcher.communicate(timeout=LOOK_SECONDS)
                used = _waited_for() - before
            except subprocess.TimeoutExpired:
                used = _alive(psutil.Process(launcher.pid))
            seconds = time.perf_counter() - started
            if seconds > limit:
                raise TimeoutError  # leaving the context manager ends the program
            _note(found, metrics, seconds, used)
        if launcher.returncode != 0:
            raise _failed(launcher, log)
    return found


def _note(found: Values, metrics: Path, seconds: float, processor: float) -> None:
    """Add the evaluations that have been recorded since the last look. An incomplete line is left for the next look.

    `seconds` is the time of this look, counted from the start of the program.
    """
    lines = metrics.read_text().split("\n")[:-1] if metrics.exists() else []
    for line in lines[len(found["accuracy"]) :]:
        found["accuracy"].append(json.loads(line)["test_accuracy"])
        found["seconds"].append(seconds)
        found["processor"].append(processor)


def _waited_for() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _alive(launcher: psutil.Process) -> float:
    """The processor seconds of a process and its descendants, including those that have ended."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (launcher, *launcher.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


def until(run: Values, target: float, clock: str = "seconds") -> float:
    """The seconds until the first evaluation that reaches the target; infinite if none does.

    `clock` is `seconds` for wall time and `processor` for processor time.
    """
    at = zip(run[clock], run["accuracy"], strict=True)
    return next((seconds for seconds, accuracy in at if accuracy >= target), float("inf"))


def times(runs: Runs, variant: str, target: float, clock: str = "seconds") -> np.ndarray:
    """The seconds until each run of a program reaches the target; infinite for runs that do not."""
    return np.array([until(run, target, clock) for run in runs[variant]])


def _said(found: np.ndarray) -> str:
    """Median and range of the runs that reached the target as text. If some did not, it says how many did."""
    reached = found[np.isfinite(found)]
    if not len(reached):
        return f"not reached in {LIMIT_SECONDS // 60} minutes"
    return told(reached, 0) + _of(np.isfinite(found))


def _times_ours(runs: Runs, variant: str, target: float) -> str:
    """The wall time divided by that of `cifar_fast.py` in the same round, as text."""
    ours, other = times(runs, "fast", target), times(runs, variant, target)
    both = np.isfinite(ours) & np.isfinite(other)
    return told(other[both] / ours[both], 2) + _of(both) if both.any() else "-"


def _of(counted: np.ndarray) -> str:
    """A text like `, in 3 of 5 runs`. It is empty if all runs count."""
    return "" if counted.all() else f", in {counted.sum()} of {len(counted)} runs"


def table(runs: Runs) -> Table:
    """The table has one row per program and target, and one for each program's last evaluation."""
    heads = "program", "test accuracy", "wall seconds", f"times {PROGRAMS['fast'][0]}'s", "processor seconds"
    rows = []
    for variant, (name, _) in PROGRAMS.items():
        for target in TARGETS:
            seconds, processor = _said(times(runs, variant, target)), _said(times(runs, variant, target, "processor"))
            rows.append((name, f"{target:.0%}", seconds, _times_ours(runs, variant, target), processor))
        ended = np.array([bool(run["accuracy"]) for run in runs[variant]])
        if not ended.any():
            rows.append((name, "no epoch ended in time", "", "", ""))
            continue
        last = {
            key: [run[key][-1] for run in runs[variant] if run["accuracy"]]
            for key in ("accuracy", "seconds", "processor")
        }
        accuracy = f"last evaluation {told(np.multiply(100, last['accuracy']), 1)} %{_of(ended)}"
        rows.append((name, accuracy, told(last["seconds"], 0), "", told(last["processor"], 0)))
    return Table(heads, rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if all runs of our program reach the last target within AIM_SECONDS."""
    found = times(runs, "fast", TARGETS[-1])
    text = f"{PROGRAMS['fast'][0]} to {TARGETS[-1]:.0%}, seconds from the launch: {_said(found)}"
    return Verdict("holds" if max(found) <= AIM_SECONDS else "fails", f"{text}; the aim is {AIM_SECONDS} in every run.")


def picture(runs: Runs) -> Picture:
    """The picture shows test accuracy against time, with one line per run."""
    figure, ax = axes("seconds from the launch", "test accuracy (%)")
    for at, (variant, (name, _)) in enumerate(PROGRAMS.items()):
        for number, one in enumerate(runs[variant]):
            accuracy = [100 * found for found in one["accuracy"]]
            ax.plot(one["seconds"], accuracy, **LOOKS[at], linewidth=1, label="" if number else name)
    for target in TARGETS:
        ax.axhline(100 * target, color=GREY, linewidth=0.8, linestyle=":", marker="")
    ax.legend(fontsize=8, loc="lower right")
    parts = "; ".join(f"{name}: {_said(times(runs, variant, TARGETS[-1]))}" for variant, (name, _) in PROGRAMS.items())
    return Picture(
        figure,
        f"Rising lines of test accuracy against time, a colour a program. Seconds to {TARGETS[-1]:.0%}: {parts}.",
        f"Seconds to {TARGETS[-1]:.0%} test accuracy, median and range: {parts}. A program is ended after "
        f"{LIMIT_SECONDS // 60} minutes; the recipe of ResNet-18 has 200 epochs.",
    )


CLAIM = Claim(
    id="accuracy",
    statement="Four workers on two cores reach 90 % test accuracy within five minutes.",
    source="",
    lesson="08_assignment",
    variants=tuple(PROGRAMS),
    seeds=5,
    settings={"images": 50_000, "limit": LIMIT_SECONDS},
    quick={"images": 512, "limit": 20},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few images teach a network nothing.",
    timing_sensitive=True,
)
