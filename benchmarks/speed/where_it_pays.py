"""The page that says where each way of exchanging gradients pays, and what the cost models are worth.

It is `docs/where_it_pays.md`. Every number on it comes from a result in `benchmarks/results`, or from published numbers
whose source it names.
"""

import io
import itertools
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.cost_models import published
from benchmarks.cost_models.published import Measurement
from benchmarks.experiment.claim import Picture, Runs
from benchmarks.experiment.plots import GREY, axes, styled
from benchmarks.experiment.runner import Series
from benchmarks.speed import crossings, equal_time, gains_by_link
from benchmarks.speed.comparisons import links, one_core_each
from benchmarks.speed.tables import Table
from grader.common.atomic_write import write_whole

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "where_it_pays.md"
NEEDED = ("links", "savings", "cores")  # the comparisons whose results the page shows
COMPARED = [way for way in links.WAYS if way not in ("alone", crossings.PLAIN)]
PAGE_WIDTH = 118  # characters of a line of the page
AIM = 0.20  # how far a prediction may be from what others have published


def write(saved: dict[str, Series]) -> None:
    """Write the page and its pictures from the saved results of the comparisons in NEEDED."""
    drawn = pictures(saved)
    for name, picture in drawn.items():
        write_whole(DOCS / f"{name}.svg", svg(picture))
    write_whole(PAGE, text(saved, drawn))


def pictures(saved: dict[str, Series]) -> dict[str, Picture]:
    """The pictures of the page, by the name of their file."""
    with styled():
        return {"gains_by_link": gains_by_link.picture(saved["links"].runs), "published_clusters": clusters()}


def text(saved: dict[str, Series], drawn: dict[str, Picture]) -> str:
    """The page, around its pictures."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["paragraph"] = lambda text: textwrap.fill(text.strip(), PAGE_WIDTH)
    runs, trained, found = saved["links"].runs, saved["savings"].runs, list(published.measurements())
    layouts = [_layout(runs, layout) for layout in crossings.BETWEEN_HOSTS]
    return environment.get_template("where_it_pays.md.jinja").render(
        saved=saved, pictures=drawn, worth=f"{100 * (crossings.WORTH - 1):.0f} %", layouts=layouts,
        speeds={batch: markdown(speeds(runs, batch)) for batch in links.BATCHES}, errors=markdown(errors(runs)),
        verdict=links.judge(runs).sentence, costs=markdown(equal_time.costs(trained)),
        equal_time=markdown(equal_time.after_equal_time(trained, runs)),
        cores=markdown(one_core_each.table(saved["cores"].runs)),
        sources=[_source(name, found) for name in published.SOURCES], clusters=summary(found),
        constants=markdown(constants()), aim=f"{100 * AIM:.0f} %",
    )  # fmt: skip


def markdown(table: Table) -> str:
    """A table in Markdown."""
    rows = [table.heads, ("---",) * len(table.heads), *table.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _layout(runs: Runs, layout: str) -> dict:
    hosts, each = links.LAYOUTS[layout]
    tables = {batch: markdown(begins(runs, layout, batch)) for batch in links.BATCHES}
    return {"hosts": hosts, "workers": hosts * each, "tables": tables}


def begins(runs: Runs, layout: str, batch: int) -> Table:
    """The rates below which each way pays, measured and predicted, with so many images for each worker."""
    rows = []
    for way in COMPARED:
        known = way in links.PREDICTED_WAYS
        found = crossings.told(crossings.measured(runs, layout, batch, way))
        predicted = crossings.told(crossings.predicted(runs, layout, batch, way)) if known else "-"
        rows.append((links.WAYS[way], found, predicted))
    return Table(("way", "measured", "predicted"), rows)


def speeds(runs: Runs, batch: int) -> Table:
    """The images/s of each way at each rate, for the layout `links.SHOWN`."""
    rows = [(name, *(f"{speed:,.0f}" for speed in links.by_rate(runs, way, batch))) for way, name in links.WAYS.items()]
    return Table(("way", *(links.in_words(rate) for rate in links.RATES)), rows)


def errors(runs: Runs) -> Table:
    """How far the model's predictions are from what was measured, where it was not fitted."""
    found = {links.WAYS[way]: np.abs(links.errors(runs, way)) for way in links.PREDICTED_WAYS}
    known = {links.WAYS[way]: np.abs(links.errors(runs, way, alone_known=True)) for way in links.PREDICTED_WAYS}
    for of in (found, known):
        of["all ways"] = np.concatenate(list(of.values()))
    rows = [
        (
            name,
            *(f"{100 * of:.0f} %" for of in (np.median(off), np.quantile(off, 0.9), off.max(), np.median(known[name]))),
        )
        for name, off in found.items()
    ]
    heads = "way", "median error", "nine of ten are below", "largest", "median error, speed alone known"
    return Table(heads, rows)


def _source(name: str, found: list[Measurement]) -> dict[str, str]:
    title, where, what, reason = published.SOURCES[name]
    of_it = [one for one in found if one.source == name]
    rows = [
        (
            one.network, one.detail, str(one.cluster.workers), f"{one.predicted:.2f}", f"{one.efficiency:.2f}",
            f"{one.ratio:.2f}",
        )
        for one in of_it
    ]  # fmt: skip
    heads = "network", "", "GPUs", "predicted", "published", "ratio"
    return {"title": title, "where": where, "what": what, "reason": reason, "table": markdown(Table(heads, rows))}


def summary(found: list[Measurement]) -> dict[str, str | int]:
    """How near the predictions are to what was published, beside two guesses.

    One guess is that no time is ever lost. The other is always the median of all published efficiencies.
    """
    off = [abs(one.ratio - 1) for one in found]
    guess = [1 / one.efficiency - 1 for one in found]
    middle = np.median([one.efficiency for one in found])
    always = [abs(middle / one.efficiency - 1) for one in found]
    return {
        "count": len(found), "median": f"{100 * np.median(off):.0f} %", "largest": f"{100 * max(off):.0f} %",
        "within": sum(one <= AIM for one in off), "guess_median": f"{100 * np.median(guess):.0f} %",
        "guess_within": sum(one <= AIM for one in guess), "guess_largest": f"{100 * max(guess):.0f} %",
        "middle_median": f"{100 * np.median(always):.0f} %", "middle_largest": f"{100 * max(always):.0f} %",
    }  # fmt: skip


def constants() -> Table:
    """The constants of the model of clusters, with their sources."""
    scales: dict[str, Callable[[float], str]] = {
        "bytes/s": lambda value: f"{value / 1e9:g} GB/s",
        "bytes": lambda value: f"{value / 1e6:g} MB",
        "s": lambda value: f"{value * 1e6:g} µs" if value < 1e-3 else f"{value * 1e3:g} ms",
        "": lambda value: f"{100 * value:.0f} %",
    }
    rows = [(one.name, scales[one.unit](one.value), one.source) for one in published.CONSTANTS.values()]
    return Table(("constant", "value", "source"), rows)


def clusters() -> Picture:
    """Predicted over published efficiency, a mark for each measurement."""
    figure, ax = axes("published efficiency (%)", "predicted efficiency (%)", size=(6.0, 4.6))
    ax.plot([55, 100], [55, 100], "-", color=GREY, marker="", linewidth=1)
    for share in (1 - AIM, 1 + AIM):
        ax.plot([55, 100], [55 * share, 100 * share], ":", color=GREY, marker="", linewidth=1)
    by_source = itertools.groupby(published.measurements(), key=lambda one: one.source)
    for (name, group), mark in zip(by_source, "os^D", strict=True):
        points = [(100 * one.efficiency, 100 * one.predicted) for one in group]
        ax.plot(
            *zip(*points, strict=True), mark, linestyle="", markersize=6, alpha=0.8, label=published.SOURCES[name][0]
        )
    ax.set(xlim=(55, 100), ylim=(55, 100))
    ax.text(97, 98.5, "equal", ha="right", va="bottom", rotation=42, color=GREY, fontsize=9)
    ax.legend(loc="lower right", fontsize=9)
    found = summary(list(published.measurements()))
    told = f"{found['within']} of {found['count']} predictions are within {100 * AIM:.0f} % of what was published"
    return Picture(
        figure,
        f"A mark for each of {found['count']} published efficiencies, predicted over published. {told}.",
        f"Each mark is a cluster that others have measured. On the grey line, prediction and measurement are equal. "
        f"Between the dotted lines they differ by at most {100 * AIM:.0f} %. {told}.",
    )


def svg(picture: Picture) -> str:
    """A picture as SVG, the same text each time."""
    from matplotlib import rc_context

    file = io.StringIO()
    with styled(), rc_context({"svg.hashsalt": "course"}):
        picture.figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
