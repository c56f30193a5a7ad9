"""Do the programs that use torch.distributed end well? Launches each of them many times and counts the failures.

    python -m benchmarks endings --launches 200

The lessons' programs are those that `make notebooks` has left in `runs/quick`. A process group has threads of its own.
In some programs these threads outlive `destroy_process_group`. Such a program sometimes fails while Python shuts down,
after all its work is done. `LATE` is such a program. It is launched to show that this command sees the failure.

Each program's counts are kept in one file. The file is written after every launch, so an interrupted command continues
where it stopped.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.experiment import results
from benchmarks.instruments.gloo_processes import PeersError, on_peers
from cifar.support.environment import stop
from cifar.support.horovodrun import torchrun_command

FOLDER = results.RESULTS / "endings"
LAUNCH_SECONDS = 300  # a launch takes about 5 seconds, so one that takes longer than this hangs
KEPT_LINES = 5  # how many of the last lines of a failed launch are kept
FIRST_IMPORT = "import torch.distributed.nn"  # without this line the group's threads outlive its end
LATE = "with_ddp, late import"


@dataclass(frozen=True)
class Program:
    """A program to launch, and its number of workers.

    `launch` takes the folder of the executed lessons. It returns the last lines of a failure, and "" if all went well.
    `file` is the file that the program needs in that folder, "" if it needs none. If `ends_well` is true, no launch may
    fail.
    """

    launch: Callable[[Path], str]
    workers: int
    file: str = ""
    ends_well: bool = True


def torchrun(name: str, workers: int, *arguments: object, left_out: str = "") -> Program:
    """A program that a lesson has written. If `left_out` is given, the lines that begin with it are removed."""
    file = f"{name}.py"

    def launch(lessons: Path) -> str:
        lines = (lessons / file).read_text().splitlines(keepends=True)
        with tempfile.TemporaryDirectory(prefix="endings-") as folder:
            program = Path(folder) / file
            program.write_text("".join(line for line in lines if not (left_out and line.startswith(left_out))))
            return run_with_torchrun(program, workers, *arguments)

    return Program(launch, workers, file, ends_well=not left_out)


def run_with_torchrun(program: Path, workers: int, *arguments: object) -> str:
    """Run a program in its own folder with `torchrun`. Returns the last lines of its errors, or "" if it succeeds."""
    try:
        done = subprocess.run(
            torchrun_command(program.name, workers, *arguments), env=os.environ | {"OMP_NUM_THREADS": "1"},
            cwd=program.parent, timeout=LAUNCH_SECONDS,
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end after {LAUNCH_SECONDS} seconds"
    return "" if done.returncode == 0 else _last(done.stderr, done.returncode)


def peers(task: str, workers: int, **arguments: object) -> Program:
    """A program that runs the function `task` on processes of `benchmarks.instruments.gloo_processes`."""

    def launch(lessons: Path) -> str:
        try:
            on_peers(task, workers, **arguments)
        except PeersError as error:
            return _last(str(error), 1)
        return ""

    return Program(launch, workers)


def _last(errors: str, status: int) -> str:
    """The last lines that a failed launch wrote.

    Where a worker's lines say why it ended, only those lines are returned, without the launcher's own traceback.
    """
    lines = errors.strip().splitlines() or [f"exit status {status}"]
    told = [line for line in lines if "terminate called" in line or "Signal" in line]
    return "\n".join((told or lines)[-KEPT_LINES:])


PROGRAMS = {
    "hello": torchrun("hello", 4),
    "both_ways": torchrun("both_ways", 4, 0, 512),
    "two_stages": torchrun("two_stages", 2, 0, 512),
    "with_ddp": torchrun("with_ddp", 2),
    "accumulate": torchrun("accumulate", 2),
    "kept, DDP": torchrun("kept", 4, "DDP"),
    "kept, FSDP": torchrun("kept", 4, "FSDP"),
    "checkpoint": torchrun("checkpoint", 4, "save"),
    "profiled": torchrun("profiled", 2),
    LATE: torchrun("with_ddp", 2, left_out=FIRST_IMPORT),
    "server and ring (C21)": peers(
        "benchmarks.methods.communication_patterns:measure", 4, batch_size=4, updates=2, seed=0
    ),
    "feeding (C22)": peers(
        "benchmarks.claims.lesson_03.c22_sending_the_batch:feed", 4, batch_size=8, updates=2, images=256, seed=0
    ),
    "weight decay (C23)": peers(
        "benchmarks.claims.lesson_03.c23_weight_decay:measure", 4, batch_size=8, updates=2, images=256, seed=0
    ),
    "orders (C25)": peers("benchmarks.claims.lesson_03.c25_sharding:epochs", 4, batch_size=8, images=256, seed=0),
    "speed, DDP": peers("benchmarks.speed.loop:peer", 2, way="ddp", network="bootcamp", batch_size=16, updates=2),
    "speed, alone": peers("benchmarks.speed.loop:peer", 2, way="alone", network="bootcamp", batch_size=16, updates=2),
}


def path(name: str, folder: Path = FOLDER) -> Path:
    """The path of the file with a program's counts."""
    return folder / f"{name}.json"


def read(name: str, folder: Path = FOLDER) -> dict:
    """A program's counts: `launches`, `failures`, and in `seen` how often each text of a failure occurred."""
    if not path(name, folder).exists():
        return {"program": name, "workers": PROGRAMS[name].workers, "launches": 0, "failures": 0, "seen": {}}
    return json.loads(path(name, folder).read_text())


def run(names: list[str], launches: int, lessons: Path, console: Console, folder: Path = FOLDER) -> None:
    """Launch each of these programs until it has been launched `launches` times in all."""
    needed = {PROGRAMS[name].file for name in names} - {""}
    if absent := sorted(file for file in needed if not (lessons / file).exists()):
        told = f"{lessons} lacks {', '.join(absent)}: run `make notebooks`, or name another folder with --lessons"
        stop(told, "benchmarks", 2)
    for name in names:
        counts = read(name, folder)
        for _ in track(range(counts["launches"], launches), name, console=console):
            failure = PROGRAMS[name].launch(lessons)
            counts["launches"] += 1
            if failure:
                counts["failures"] += 1
                counts["seen"][failure] = counts["seen"].get(failure, 0) + 1
            results.write(path(name, folder), counts)


def show(names: list[str], console: Console, folder: Path = FOLDER) -> bool:
    """Print a line for each program.

    Returns whether every program has been launched, and every program that must end well has never failed.
    """
    found = {name: read(name, folder) for name in names}
    for name, counts in found.items():
        console.print(f"{name}: {counts['failures']} of {counts['launches']} launches failed", highlight=False)
        for failure, times in counts["seen"].items():
            console.print(f"  {times} times: {failure}", highlight=False, markup=False)
    return all(
        counts["launches"] > 0 and (counts["failures"] == 0 or not PROGRAMS[name].ends_well)
        for name, counts in found.items()
    )
