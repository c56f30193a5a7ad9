"""The case that the course begins with, in a picture: saved runs of one worker and of four."""

from statistics import fmean

from benchmarks import claims
from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from benchmarks.experiment import runner
from benchmarks.experiment.plots import LOOKS
from lessons.cells import figures

VARIANTS = {"one worker": "falling-1", "four workers": "falling-4-epochs"}


def show_case() -> None:
    """Show the test accuracy after each epoch, as a line for each saved run."""
    runs = runner.saved(claims.get("C04")).runs
    figure, ax = figures.axes("epoch", "test accuracy (%)")
    for (name, variant), look in zip(VARIANTS.items(), LOOKS, strict=False):
        for run in runs[variant]:
            percent = [100 * value for value in run["accuracy"]]
            ax.plot(range(1, len(percent) + 1), percent, **look)
        ax.annotate(name, (len(percent), percent[-1]), (8, -3), textcoords="offset points", color=look["color"])
    ax.set_xticks(range(1, len(percent) + 1))
    ax.set_xlim(right=1.2 * len(percent))  # room for the names
    one, four = (f"{100 * fmean(c04.last(runs, variant)):.1f} %" for variant in VARIANTS.values())
    figures.show(
        figure,
        alt=f"Test accuracy over {len(percent)} epochs. One worker ends at {one}, four workers at {four}.",
        caption=f"One worker and four workers, {len(runs['falling-1'])} runs of each. All have used each image "
        f"{len(percent)} times. (One process computed what the workers would compute: see lesson 05.) In the end, "
        f"one worker has {one} of the test images right in the mean, and four workers have {four}.",
    )
