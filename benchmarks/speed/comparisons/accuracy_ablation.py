"""Do the techniques that make training fast cost accuracy? `cifar_fast.py` runs with and without them, over seeds.

bfloat16 arithmetic is compared with float32. Early epochs of smaller images are compared with fewer epochs of whole
images, which multiply and add about as often: three epochs of 20 pixels, three of 24 and four of 32 are as many
operations as seven epochs of 32 pixels. Waiting and cycle times change no bit of a gradient, as a test shows. Grouping
changes at most the order of its sums.
"""

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import Difference, deviation, difference, mean_std
from benchmarks.experiment.plots import GREY, axes
from benchmarks.speed.comparisons import time_to_accuracy
from benchmarks.speed.tables import Table

NAMES = {"bfloat16": "bfloat16", "float32": "float32", "whole": "float32, images never smaller"}
EPOCHS = {"bfloat16": 10, "float32": 10, "whole": 7}  # about equally many operations in all variants
# For each technique, the variant with it and the variant without it.
MEANS = {"bfloat16": ("bfloat16", "float32"), "smaller images": ("float32", "whole")}
NEGLIGIBLE = 0.01  # a difference in accuracy (0 to 1) that counts as none
SECONDS = 3600  # a run that takes longer is taken to hang, or to emulate bfloat16


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the test accuracy (0 to 1) after the last epoch, and the seconds of training."""
    epochs = max(1, round(EPOCHS[variant] * settings["share_of_epochs"]))
    options = {
        "epochs": epochs, "seed": seed, "images": settings["images"], "test-images": settings["test_images"],
        "device": settings["device"],
    }  # fmt: skip
    lines = time_to_accuracy.finished(
        ["-m", "benchmarks.speed.rivals.fast_ablation", variant], options, time_to_accuracy.WORKERS, SECONDS
    )
    return {"test_accuracy": lines[-1]["test_accuracy"], "seconds": sum(line["seconds"] for line in lines)}


def accuracies(runs: Runs, variant: str) -> list[float]:
    """The test accuracy of each seed."""
    return [run["test_accuracy"] for run in runs[variant]]


def gained(runs: Runs, means: str) -> Difference:
    """The accuracy with one of the techniques in MEANS minus the accuracy without it."""
    with_it, without = MEANS[means]
    return difference(accuracies(runs, with_it), accuracies(runs, without))


def table(runs: Runs) -> Table:
    """The table has one row per variant."""
    rows = [
        (name, str(EPOCHS[variant]), f"{mean_std(accuracies(runs, variant), 100)} %", str(len(runs[variant])))
        for variant, name in NAMES.items()
    ]
    return Table(("cifar_fast.py with", "epochs", "test accuracy, last epoch", "seeds"), rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if every interval excludes each loss of accuracy that is not negligible.

    Otherwise it fails if an interval lies below zero.
    """
    found = {means: gained(runs, means) for means in MEANS}
    told = "; ".join(f"{means} {one.text(100, 2, ' points')}" for means, one in found.items())
    if all(one.low > -NEGLIGIBLE for one in found.values()):
        word = "holds"
    else:
        word = "fails" if any(one.high < 0 for one in found.values()) else "no difference seen"
    return Verdict(word, f"Test accuracy with it minus without: {told}.")


def picture(runs: Runs) -> Picture:
    """The picture shows each variant's mean and deviation, and a dot for each seed."""
    figure, ax = axes("", "test accuracy, last epoch (%)")
    for at, variant in enumerate(NAMES):
        found = np.multiply(100, accuracies(runs, variant))
        ax.plot([at - 0.1] * len(found), found, "o", color=GREY, markersize=4)
        ax.errorbar(at + 0.1, found.mean(), deviation(found), fmt="s", capsize=4)
    ax.set_xticks(range(len(NAMES)), NAMES.values())
    parts = ", ".join(f"{name} {mean_std(accuracies(runs, variant), 100)} %" for variant, name in NAMES.items())
    return Picture(
        figure,
        f"Test accuracy of three ways, one dot for each seed and their mean with its deviation: {parts}.",
        f"Test accuracy: {parts} (mean and deviation over seeds; dots: seeds). On "
        f"{CLAIM.settings['images']:,} training images, so lower than in the race; epochs in number as they cost.",
    )


CLAIM = Claim(
    id="kept",
    statement="Neither bfloat16 nor smaller images in early epochs cost accuracy.",
    source="",
    lesson="08_assignment",
    variants=tuple(NAMES),
    seeds=5,
    settings={"images": 25_000, "test_images": 10_000, "share_of_epochs": 1.0},
    quick={"images": 512, "test_images": 200, "share_of_epochs": 0.1},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few images teach a network nothing.",
)
