"""How long does training to 94 % take on a GPU? `cifar_fast.py` with one and with four workers runs beside airbench94.

airbench94 is Keller Jordan's program, from the package `airbench`. It is no dependency of the course. On a machine with
a GPU, run `pip install airbench==0.1.8 torchvision` first. airbench94 is timed as its author times it: on a card that a
first run has warmed up, and without evaluations. Our program is timed from the first batch of a fresh process, and its
time includes the evaluations.
"""

import json
import subprocess
import sys

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import GREY, axes
from benchmarks.speed.comparisons.time_to_accuracy import PROGRAMS, finished
from benchmarks.speed.tables import Table, told

VARIANTS = {"airbench94": "airbench94", "1_worker": "cifar_fast.py, 1 worker", "4_workers": "cifar_fast.py, 4 workers"}
TARGET = 0.94  # test accuracy (0 to 1) that airbench94 is made for
# For a variant and another one: how many times the other's seconds the variant may take.
AIMS = {("1_worker", "airbench94"): 1.5, ("4_workers", "1_worker"): 2.0}
SECONDS = 600  # a run that takes longer is taken to hang, or to have no GPU


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the test accuracy (0 to 1) at the end, the seconds of training, and the images/s."""
    if variant == "airbench94":
        command = [sys.executable, "-m", "benchmarks.speed.rivals.airbench94", str(seed)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS)
        return json.loads(found.stdout.splitlines()[-1])
    workers = int(variant[0])
    options = {name: settings[name] for name in ("epochs", "images", "device")}
    options |= {"seed": seed, "batch-size": settings["batch_size"] // workers, "test-images": settings["test_images"]}
    lines = finished(PROGRAMS["fast"][1], options, workers, SECONDS)
    seconds = sum(line["seconds"] for line in lines)
    images = sum(line["images_per_s"] * line["seconds"] for line in lines)
    return {"test_accuracy": lines[-1]["test_accuracy"], "seconds": seconds, "images_per_s": images / seconds}


def accuracies(runs: Runs, variant: str) -> list[float]:
    """The test accuracy at the end of each seed's run."""
    return [run["test_accuracy"] for run in runs[variant]]


def seconds(runs: Runs, variant: str) -> np.ndarray:
    """The seconds of training of each seed."""
    return np.array([run["seconds"] for run in runs[variant]])


def ratios(runs: Runs, variant: str, other: str) -> np.ndarray:
    """A variant's seconds divided by another's, one value per round."""
    return seconds(runs, variant) / seconds(runs, other)


def table(runs: Runs) -> Table:
    """The table has one row per variant."""
    aims = {variant: (other, most) for (variant, other), most in AIMS.items()}
    rows = []
    for variant, name in VARIANTS.items():
        other, most = aims.get(variant, ("", 0))
        ratio = f"{told(ratios(runs, variant, other), 2)} of {VARIANTS[other]}'s (the aim: {most})" if other else ""
        speed = told([run["images_per_s"] for run in runs[variant]], 0)
        rows.append(
            (name, f"{mean_std(accuracies(runs, variant), 100)} %", told(seconds(runs, variant), 2), ratio, speed)
        )
    return Table(("program", "test accuracy, at the end", "seconds", "times the seconds", "images/s"), rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if both aims are met, and fails if neither is.

    A program meets an aim only if its mean accuracy reaches the target.
    """
    reach = {variant: np.mean(accuracies(runs, variant)) >= TARGET for variant in VARIANTS}
    met = [
        reach[variant] and np.median(ratios(runs, variant, other)) <= most for (variant, other), most in AIMS.items()
    ]
    parts = [
        f"{VARIANTS[variant]} takes {told(ratios(runs, variant, other), 2)} times the seconds of {VARIANTS[other]} "
        f"(the aim: {most})"
        for (variant, other), most in AIMS.items()
    ]
    below = [
        f"{name} does not reach {TARGET:.0%} on average" for variant, name in VARIANTS.items() if not reach[variant]
    ]
    word = "holds" if all(met) else "depends" if any(met) else "fails"
    return Verdict(word, f"{'; '.join(parts + below)}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the accuracy against the seconds, with a dot for each run."""
    figure, ax = axes("seconds of training", "test accuracy, at the end (%)")
    for variant, name in VARIANTS.items():
        ax.plot(seconds(runs, variant), np.multiply(100, accuracies(runs, variant)), linestyle="none", label=name)
    ax.axhline(100 * TARGET, color=GREY, linewidth=0.8, linestyle=":", marker="")
    ax.set_xlim(0, None)
    ax.legend()
    parts = "; ".join(
        f"{name} {mean_std(accuracies(runs, variant), 100)} % in {told(seconds(runs, variant), 1)} s"
        for variant, name in VARIANTS.items()
    )
    return Picture(
        figure, f"Test accuracy against seconds, one dot for each run. {parts}.",
        f"{parts} (seconds: median and range). airbench94 after a run that warms the card up, ours from the first "
        "batch of a fresh process, evaluations included.",
    )  # fmt: skip


CLAIM = Claim(
    id="gpu",
    statement="On a GPU one worker trains to 94 % in at most 1.5 times airbench94's time, and four that share the card "
    "in twice one worker's.",
    source="",
    lesson="08_assignment",
    variants=tuple(VARIANTS),
    seeds=5,
    settings={"images": 50_000, "test_images": 10_000, "epochs": 10, "batch_size": 1024},
    quick={"images": 512, "test_images": 200, "epochs": 1, "batch_size": 64},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few images teach a network nothing.",
    timing_sensitive=True,
)
