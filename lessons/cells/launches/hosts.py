"""Runs on two hosts in a notebook: live where hosts can be had on this machine, and otherwise as they were saved.

made = on_two_hosts("a worker is killed")
"""

import itertools

from IPython.display import HTML, display
from matplotlib.figure import Figure

from benchmarks import hosts
from benchmarks.experiment import results
from benchmarks.experiment.plots import COLOURS, GREY, panels, styled
from cifar.support.horovodrun import named, read_line
from cluster import ClusterError
from lessons.cells.display.figures import show
from lessons.cells.display.tables import table

ROWS = (hosts.CALM, *hosts.TROUBLES)  # of the table
COLOUR_OF = {4: COLOURS[0], 2: COLOURS[1]}  # of the stretches with so many workers


def on_two_hosts(name: str = hosts.TWO_HOSTS, seed: int = 0) -> dict:
    """Run one of the runs of `benchmarks.hosts`, show its output, and return what became of it.

    `name` is `two hosts`, or the trouble of an elastic run. An elastic run is shown as a figure, too. If no hosts can
    be made here, one line says why, and a run that was saved is shown in its place.
    """
    made = _made(name, seed)
    if name in hosts.TROUBLES:
        with styled():
            show(_figure(made), _alt(made), _caption(made))
    return made


def show_troubles() -> None:
    """Show a table of the saved elastic runs: what each kind of trouble cost."""
    heads = (
        "trouble", "test accuracy at the end", "pause after it", "pause when beta is back", "updates again, at most",
        "images left out",
    )  # fmt: skip
    display(HTML(table(map(_cells, ROWS), heads)))


def _cells(name: str) -> list[str]:
    """The cells of a row of the table of troubles."""
    runs = hosts.read(name)
    accuracies = [run["epochs"][-1]["test_accuracy"] for run in runs]
    pauses = [[run["pauses"][number] for run in runs if run["pauses"]] for number in range(2)]
    again = max(sum(stretch["repeated"] for stretch in run["stretches"]) for run in runs)
    return [
        name, f"{min(accuracies):.0%} to {max(accuracies):.0%}",
        *(f"{min(found):.0f} to {max(found):.0f} s" if found else "" for found in pauses),
        str(again), str(sum(run["lost"] for run in runs)),
    ]  # fmt: skip


def _made(name: str, seed: int) -> dict:
    try:
        return hosts.two_hosts(_say, seed) if name == hosts.TWO_HOSTS else hosts.elastic_run(name, _say, seed)
    except ClusterError as error:
        made = hosts.read(name)[0]
        print(f"No hosts can be made here: {error}.")
        print(f"So this is a run that was saved. Machine: {results.described(made['machine'])}.")
        for line in made["lines"]:
            _say(line)
        return made


def _say(line: str) -> None:
    """Print what a worker has written on its standard output, or what was done to a host."""
    if read_line(line).stream == "stdout" or line.startswith("now "):
        print(named(line), flush=True)


def _figure(made: dict) -> Figure:
    """Draw the images that were done, and the learning rate, over the time since the launch."""
    time = "seconds since the launch"
    figure, (done, rate) = panels((time, "images done, in thousands"), (time, "learning rate"))
    for number, stretch in enumerate(made["stretches"]):
        side = "right" if number else "left"  # The first line is near the axis, so its name stands at its other side.
        seconds, images = zip(*stretch["points"], strict=True)
        look = {"color": COLOUR_OF[stretch["workers"]], "marker": "", "linestyle": "-"}
        done.plot(seconds, [count / 1000 for count in images], **look)
        rate.plot(seconds, stretch["rates"], **look)
        for axis, value in ((done, images[-1] / 1000), (rate, stretch["rates"][-1])):
            axis.annotate(
                f"{stretch['workers']} workers", (seconds[-1], value), xytext=(-4 if number else 4, 6),
                textcoords="offset points", ha=side, color=look["color"],
            )  # fmt: skip
    for before, after in itertools.pairwise(made["stretches"]):
        for axis in (done, rate):
            axis.axvspan(before["points"][-1][0], after["points"][0][0], color=GREY, alpha=0.25, linewidth=0)
    return figure


def _alt(made: dict) -> str:
    parts = [f"{stretch['workers']} workers make {stretch['updates']} updates" for stretch in made["stretches"]]
    return (
        f"Two curves over the time since the launch: images done, and the learning rate. {', then '.join(parts)}. "
        "Grey bands between them show the pauses."
    )


def _caption(made: dict) -> str:
    pauses = " and ".join(f"{seconds:.0f}" for seconds in made["pauses"])
    repeated = sum(stretch["repeated"] for stretch in made["stretches"])
    return (
        f"Trouble: {made['trouble']}. The grey bands are the pauses, {pauses} seconds long. "
        f"{repeated} updates had to be made again. {made['lost']} images were lost, and {made['twice']} were used "
        f"twice. At the end {made['epochs'][-1]['test_accuracy']:.1%} of the test images were right."
    )
