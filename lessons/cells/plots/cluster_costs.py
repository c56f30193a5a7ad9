"""Draws what lesson 09 computes: the time lost to checkpoints and failures, and the time of an exchange in a ring."""

from collections.abc import Callable

import numpy as np

from benchmarks.cost_models.ring_all_reduce import traffic
from benchmarks.experiment.plots import LOOKS
from lessons.cells.display.figures import axes, panels, show
from lessons.cells.display.tables import table

Lost = Callable[[float, float, float, int], float]  # a learner's share_lost
Worth = Callable[[float, float, float, float, int], int]  # a learner's worth_having
MOST = 4096  # workers


def show_share_lost(share_lost: Lost, writing: float, between: float, counts: tuple[int, int]) -> None:
    """Draw the share of the time that is lost against the minutes between two checkpoints, for two numbers of GPUs.

    `share_lost` is a learner's function, and `writing` and `between` are its arguments, in seconds.
    """
    minutes = np.geomspace(2, 1200, 200)
    figure, parts = panels(*[("minutes between two checkpoints", "time lost (%)")] * 2, size=(8.0, 3.2))
    best = []
    for ax, count in zip(parts, counts, strict=True):
        lost = [100 * share_lost(60 * each, writing, between, count) for each in minutes]
        written = 100 * writing / (60 * minutes)
        ax.semilogx(minutes, lost, label="all", **LOOKS[0] | {"marker": ""})
        ax.semilogx(minutes, written, label="writing", **LOOKS[1] | {"marker": ""})
        ax.semilogx(minutes, np.array(lost) - written, label="work done again", **LOOKS[2] | {"marker": ""})
        lowest = int(np.argmin(lost))
        ax.plot(minutes[lowest], lost[lowest], "o", color=LOOKS[0]["color"], markersize=7)
        ax.set(title=f"{count:,} GPUs, a failure every {between / count / 3600:,.0f} hours", ylim=(0, 4 * lost[lowest]))
        best.append(f"{count:,} GPUs {lost[lowest]:.1f} %")
    parts[0].legend()
    told = f"At the best interval, this share is lost: {'; '.join(best)}."
    alt = f"Two curves that fall and then rise, each with a lowest point. {told}"
    show(figure, alt, f"{told} Dots: the lowest points.")


def show_exchange(links: dict[str, tuple[float, float]], computing: dict[str, float], gradient_bytes: int) -> None:
    """Draw the time of an exchange in a ring against the number of workers, a line for each link.

    `links` has the seconds of a message and of a byte. `computing` has the seconds of an update without an exchange,
    which are drawn as dotted lines.
    """
    workers = np.unique(np.geomspace(2, MOST, 200).astype(int))
    figure, ax = axes("workers", "exchange (ms)")
    for (link, (latency, byte_time)), look in zip(links.items(), LOOKS, strict=False):
        messages, sent = traffic(workers, gradient_bytes)
        seconds = messages * latency + sent * byte_time
        ax.semilogx(workers, 1000 * seconds, label=link, base=2, **look | {"marker": ""})
    for words, seconds in computing.items():
        ax.axhline(1000 * seconds, color="0.4", linestyle=":")
        ax.text(MOST, 1000 * seconds, f"computing, {words}", va="bottom", ha="right", fontsize=9)
    ax.set_xticks([2, 4, 16, 64, 256, 1024, 4096], ["2", "4", "16", "64", "256", "1,024", "4,096"])
    ax.set_ylim(0, 900)
    ax.legend(loc="center left", bbox_to_anchor=(0.02, 0.62))
    told = ", ".join(f"{1000 * seconds:.0f} ms with {words}" for words, seconds in computing.items())
    show(
        figure,
        "The time of an exchange against the number of workers. Each line rises steeply at first, is then nearly flat, "
        "and rises again where messages count.",
        f"Workers are worth having as long as their line is below the dotted one. Computing takes {told}.",
    )


def exchange_table(
    links: dict[str, tuple[float, float]],
    computing: dict[str, float],
    gradient_bytes: int,
    worth_having: Worth,
    size: int,
) -> str:
    """Return a table in HTML: for each link and batch what `size` workers need, and how many are worth having."""
    rows = []
    for link, (latency, byte_time) in links.items():
        count, sent = traffic(size, gradient_bytes)
        messages, sending = count * latency, sent * byte_time
        for words, seconds in computing.items():
            work = size * seconds / (seconds + messages + sending)
            most = worth_having(seconds, latency, byte_time, 0, gradient_bytes)
            times = (f"{1000 * part:.0f}" for part in (seconds, messages, sending))
            rows.append((link, words, *times, f"{work:.0f}", f"{most:,}" if most < MOST else "thousands"))
    parts = ("computing, ms", "messages, ms", "bytes, ms")
    return table(rows, ("link", "batch", *parts, f"{size} do the work of", "worth having"))
