"""The page of the comparisons: the verdict, table, picture, machine and command of each.

For a comparison that has not been measured in full, the page names the variants without a result.
"""

import base64
import io
from importlib.resources import files
from pathlib import Path

import rich.table
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from benchmarks import speed
from benchmarks.experiment import runner
from benchmarks.experiment.runner import Series
from benchmarks.speed.tables import Table
from grader.common.atomic_write import write_whole

DPI = 144  # dots per inch: sharp on a screen that shows each pixel as two by two


def write(folder: Path, target: Path, overhead: dict[str, str | int]) -> None:
    """Write the page of the comparisons to `target`. Each comparison has its results in a subfolder of `folder`.

    `overhead` says how much time grading adds to a run, as `benchmarks.assignment.overhead.described` does.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    style = Markup(files("benchmarks.experiment").joinpath("page.css").read_text())
    sections = [_section(runner.saved(speed.get(id), folder / id)) for id in speed.IDS]
    page = environment.get_template("page.html").render(style=style, sections=sections, graded=overhead)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, page)


def _section(saved: Series) -> dict:
    claim = saved.claim
    told = {"id": claim.id, "statement": claim.statement, "missing": saved.missing, "command": command(claim.id)}
    if saved.missing:
        return told
    picture = claim.picture(saved.runs)
    return told | {
        "verdict": saved.verdict, "provisional": saved.provisional, "machine": saved.machine, "rounds": saved.seeds,
        "table": table(saved), "image": _png(picture.figure), "alt": picture.alt, "caption": picture.caption,
    }  # fmt: skip


def table(saved: Series) -> Table:
    """The table that a comparison's module makes from its runs."""
    return speed.module(saved.claim.id).table(saved.runs)


def rich_table(saved: Series) -> rich.table.Table:
    """The table of a comparison for the terminal."""
    made = table(saved)
    shown = rich.table.Table(*made.heads)
    for row in made.rows:
        shown.add_row(*row)
    return shown


def command(id: str) -> str:
    """The command that measures what has no results yet of a comparison."""
    return f"python -m benchmarks {speed.LONG.get(id, f'speed --only {id}')}"


def _png(figure: Figure) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return base64.b64encode(file.getvalue()).decode()
