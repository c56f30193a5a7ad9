"""The case that the course begins with, in pictures: saved runs of one worker and of four, and what solves it."""

from statistics import fmean

from benchmarks.claims.lesson_05 import c04_time_to_accuracy as c04
from benchmarks.experiment.plots import LOOKS, styled
from lessons import saved_runs
from lessons.cells.display import figures

VARIANTS = {"one worker": "falling-1", "four workers": "falling-4-epochs"}


def show_case() -> None:
    """Show the test accuracy after each epoch, as a line for each saved run."""
    runs = saved_runs.runs("C04")
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
        f"{len(percent)} times. In the end, one worker has {one} of the test images right in the mean, and four "
        f"workers have {four}. Lesson 05 says how the runs were made.",
    )


def show_solution() -> None:
    """Show where the runs of the case end, and where four workers end if they make as many updates as one."""
    runs = saved_runs.runs("C04")
    groups = {"": ["falling-1"], "equal epochs": ["falling-4-epochs"], "equal updates": ["falling-4-updates"]}
    with styled():
        figure = c04.draw_ends(runs, groups, height=2.4)
        ends = [f"{100 * fmean(c04.last(runs, variant)):.1f} %" for (variant,) in groups.values()]
        figures.show(
            figure,
            alt=f"One worker ends at {ends[0]}, four workers at {ends[1]} with as many epochs, and at {ends[2]} with "
            "as many updates.",
            caption=f"Where the runs end: mean of {len(runs['falling-1'])} seeds, bars: one standard deviation.",
        )
