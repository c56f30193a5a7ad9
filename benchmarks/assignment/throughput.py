"""How many submissions are graded in an hour by one, two and three machines?

The machines are hosts on this machine (package `cluster`). Each has the same share of the cores, however many there
are, as if it had its own processor. `python -m benchmarks throughput` continues an interrupted measurement.
"""

import contextlib
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console

import cluster
from benchmarks.assignment.calibrate import VARIANTS
from benchmarks.experiment import results
from benchmarks.instruments import core_share
from benchmarks.instruments.grading_hosts import GradingHosts
from cifar.support.environment import cores

MACHINES = (1, 2, 3)
STUDENTS = 6  # one, two and three machines can each divide it
SHARE = 0.9 / max(MACHINES)  # of all cores, for each machine; the rest is for the scheduler
FOLDER = results.RESULTS / "throughput"


def measure(machines: int, round: int) -> dict:
    """Let so many machines grade a class, and return what it took. Each student hands in the reference solution.

    Raises ClusterError if hosts cannot be had here, OSError if cores cannot be limited, and RuntimeError if grading
    fails.
    """
    each = SHARE * cores()
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(cluster.up(1 + machines))
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        shares = {host: stack.enter_context(core_share.limited_to(each, host)) for host in list(hosts.hosts)[1:]}
        grading = GradingHosts(hosts, root)
        stack.callback(grading.end)
        for host, within in shares.items():
            grading.join(host, within)
        for number in range(STUDENTS):
            shutil.copytree(VARIANTS["reference"], root / "class" / f"student{number}")
        started = time.monotonic()
        status = grading.grade(root / "class", root / "graded", "--key", f"round {round}").wait()
        seconds = time.monotonic() - started
        if status != 0:
            raise RuntimeError(f"grading ended with {status}:\n{grading.log('alpha').read_text()[-1000:]}")
        graded = json.loads((root / "graded" / "results.json").read_text())["results"]
    return {
        "machines": machines, "seed": round, "students": STUDENTS, "cores_each": each, "seconds": seconds,
        "points": [result["points"] for result in graded],
    }  # fmt: skip


def run(rounds: int, console: Console, folder: Path = FOLDER) -> None:
    """Measure each number of machines once in each round. What has a result is not repeated."""
    for round in range(rounds):
        for machines in MACHINES:
            path = folder / f"machines_{machines}-{round}.json"
            if not path.exists():
                measured = measure(machines, round)
                results.write(path, measured)
                console.print(
                    f"round {round}, machines: {machines}, seconds: {measured['seconds']:.0f}", highlight=False
                )


def speeds(machines: int, folder: Path = FOLDER) -> list[float]:
    """Return the submissions per hour of so many machines, one number for each round."""
    return [3600 * saved["students"] / saved["seconds"] for saved in results.read(folder, f"machines_{machines}")]


def name(machines: int) -> str:
    """Return so many machines in words."""
    return f"{machines} machine{'s' * (machines > 1)}"


def show(console: Console, folder: Path = FOLDER) -> bool:
    """Print the throughput of each number of machines. Returns whether all have been measured."""
    found = {machines: speeds(machines, folder) for machines in MACHINES}
    for machines, measured in found.items():
        if measured:
            spread = f", from {min(measured):.1f} to {max(measured):.1f}" if len(measured) > 1 else ""
            middle = statistics.median(measured)
            console.print(f"{name(machines)}: {middle:.1f} submissions an hour{spread}", highlight=False)
    return all(found.values())
