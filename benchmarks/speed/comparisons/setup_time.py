"""How long does it take from a clone to a grade card? Set-up, data, lessons and grading are measured part by part.

Each run clones this repository's last commit into an empty folder and runs the commands of a newcomer. The variant
`bare` has empty caches: packages come from where pip and npm are told to look, and Horovod is compiled. The variant
`again` uses this user's caches. System packages are already installed. The commands' output shows where a part begins.
"""

import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import BLUE, GREY, axes
from benchmarks.speed.tables import Table, told
from cifar.support.horovodrun import running

VARIANTS = {"bare": "empty caches", "again": "full caches, and all lessons"}
COURSE_LESSONS = ("lesson 00_start_here", "lesson 08_assignment")  # the lessons that `make course` executes
# The largest number of minutes that a command may take in a variant. `make course` leads to the grade card.
AIMS = {("bare", "make course"): 15, ("again", "make course"): 7, ("again", "make notebooks"): 12}
REPOSITORY = Path(__file__).resolve().parents[3]
FIRST = "virtual environment"  # the part that begins before any line is written
# A text in a line of output, and the part that begins with that line.
BEGINS = {
    "installing the locked dependencies": "locked dependencies",
    "downloading the source of": "Horovod, compiled",
    "installing Horovod": "Horovod and the course, installed",
    "ready after": "CIFAR-10",
    "-m lessons": "lessons' pages",
    "-m grader check": "the reference, trained and graded",
}
LESSON = re.compile(r"\d+/\d+  (\S+)  ")  # a line that is written at the end of a lesson


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the seconds of each part and of the whole run."""
    with tempfile.TemporaryDirectory(prefix="start-") as scratch:
        clone, caches = Path(scratch) / "clone", Path(scratch) / "caches"
        subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
        variables = {"PATH": os.environ["PATH"], "COURSE_ENV": str(clone / ".venv"), "MAKEFLAGS": ""}
        if variant == "bare":
            folders = {"XDG_CACHE_HOME": "all", "PIP_CACHE_DIR": "pip", "NPM_CONFIG_CACHE": "npm"}
            variables |= {name: str(caches / folder) for name, folder in folders.items()}
        return _typed(["make", "-C", str(clone), *_targets(variant, settings)], variables)


def _targets(variant: str, settings: Settings) -> list[str]:
    """The targets of `make`.

    They are the course, and with full caches all notebooks as well. A quick run only makes `help`, the list of targets.
    """
    return ["course" if settings["course"] else "help"] + ["notebooks"] * (variant == "again" and settings["notebooks"])


def _typed(command: list[str], variables: dict[str, str]) -> Values:
    started = time.perf_counter()
    with running(command, 1, variables) as process:
        stamped = [(time.perf_counter() - started, line) for line in process.stdout]
    total = time.perf_counter() - started
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{''.join(line for _, line in stamped[-25:])}")
    return {"parts": split(stamped, total), "seconds": total}


def split(stamped: list[tuple[float, str]], total: float) -> dict[str, float]:
    """The seconds of each part. `stamped` holds each line with the second at which it came, `total` all seconds."""
    found, since, part = Counter(), 0.0, FIRST
    for at, line in stamped:
        lesson = LESSON.match(line)
        begun = next((name for mark, name in BEGINS.items() if mark in line), None)
        if lesson or begun:
            found[f"lesson {lesson[1]}" if lesson else part] += at - since
            since, part = at, begun or part
    found[part] += total - since
    return dict(found)


def names(runs: Runs) -> list[str]:
    """The names of the parts, in the order in which they occur."""
    return list(dict.fromkeys(name for variant in VARIANTS for run in runs[variant] for name in run["parts"]))


def seconds(runs: Runs, variant: str, name: str) -> list[float]:
    """The seconds of a part, one value for each round in which it occurred."""
    return [run["parts"][name] for run in runs[variant] if name in run["parts"]]


def minutes(run: Values, command: str) -> float:
    """The minutes of the parts that belong to a command.

    For `make notebooks` these are all lessons and their pages. For `make course` they are all parts except the other
    lessons.
    """
    lessons = {name for name in run["parts"] if name.startswith("lesson")}
    others = lessons - {*COURSE_LESSONS, "lessons' pages"}
    made = lessons if command == "make notebooks" else run["parts"].keys() - others
    return sum(run["parts"][name] for name in made) / 60


def table(runs: Runs) -> Table:
    """The table has one row per part, and one for all parts together."""
    rows = [
        (name, *(told(found, 0) if (found := seconds(runs, variant, name)) else "" for variant in VARIANTS))
        for name in names(runs)
    ]
    rows.append(("all", *(told([run["seconds"] for run in runs[variant]], 0) for variant in VARIANTS)))
    return Table(("part", *(f"seconds, {name}" for name in VARIANTS.values())), rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if all runs meet every aim, and fails if no aim is met by all its runs."""
    found = {aim: [minutes(run, aim[1]) for run in runs[aim[0]]] for aim in AIMS}
    within = [max(found[aim]) <= most for aim, most in AIMS.items()]
    text = [
        f"{command}, {VARIANTS[variant].partition(',')[0]}: {told(found[variant, command], 1)} minutes "
        f"(the aim: {most})"
        for (variant, command), most in AIMS.items()
    ]
    return Verdict("holds" if all(within) else "depends" if any(within) else "fails", f"{'; '.join(text)}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the median minutes: one row per part, and one bar per variant."""
    parts = names(runs)
    figure, ax = axes("minutes", "", size=(8.0, 0.8 + 0.3 * len(parts)))
    for shift, (variant, label) in enumerate(VARIANTS.items()):
        lengths = [np.median(seconds(runs, variant, name) or [0]) / 60 for name in parts]
        ax.barh(np.arange(len(parts)) + 0.4 * (shift - 0.5), lengths, 0.38, color=(GREY, BLUE)[shift], label=label)
    ax.set_yticks(range(len(parts)), parts)
    ax.invert_yaxis()
    ax.legend(loc="lower right")
    totals = ((label, np.median([run["seconds"] for run in runs[variant]]) / 60) for variant, label in VARIANTS.items())
    told_totals = "; ".join(f"{label}: {total:.1f} minutes" for label, total in totals)
    return Picture(
        figure, f"Two bars a part of the start. In all, {told_totals}.",
        f"In all, {told_totals} (medians). System packages were there already.",
    )  # fmt: skip


CLAIM = Claim(
    id="start",
    statement="From a bare machine to the grade card in a quarter of an hour, and in half of that again.",
    source="",
    lesson="00_start_here",
    variants=tuple(VARIANTS),
    seeds=1,
    settings={"course": 1, "notebooks": 1},
    quick={"course": 0, "notebooks": 0},
    run=run,
    judge=judge,
    picture=picture,
    caution="make help sets nothing up.",
    timing_sensitive=True,
)
