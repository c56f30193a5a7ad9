"""Makes HTML pages of executed lessons, a gallery, the summaries, and an index with the results of the claims.

No page needs a network or another file, or a script. Only the explorables have scripts, and a page names them by their
hashes, so that a browser runs no other one. Formulas become MathML, and pictures are part of the page. All pages
have one style, that of the page of speeds: `page.css` in `benchmarks/experiment`.
"""

from importlib.resources import files
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor, Preprocessor
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from benchmarks.claims.table import Row
from grader.common.atomic_write import write_whole
from grader.notebooks.build import SOLUTIONS, drawing
from lessons.execute import failed, kept
from lessons.explorables import script_hashes
from lessons.site import gallery, math_font, summaries
from lessons.site.cards import OPENING_DRAWING, Card, card
from lessons.site.markdown import as_html

HERE = Path(__file__).parent
PAGES = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
VERDICTS = {"holds": "holds", "fails": "is false", "depends": "depends", "no difference seen": "shows no difference"}
CODE = {scheme: HtmlFormatter(style=style) for scheme, style in {"light": "default", "dark": "github-dark"}.items()}


class _Streams(CoalesceStreamsPreprocessor):
    """Join what a cell has printed, and leave out what is blank, such as the rest of a progress bar, or points."""

    def preprocess_cell(self, cell: NotebookNode, resources: dict, cell_index: int) -> tuple[NotebookNode, dict]:
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if not _is_blank(one)]
        return cell, resources


def _is_blank(output: NotebookNode) -> bool:
    if output.output_type == "stream":
        return not output.text.strip()
    return output.get("data", {}).get("text/html") == ""


class _Parameters(Preprocessor):
    """Leave out the parameters of the lesson's text if papermill has put others into the cell below them."""

    def preprocess(self, notebook: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
        if any("injected-parameters" in own for own in tags):
            kept = [cell for cell, own in zip(notebook.cells, tags, strict=True) if "parameters" not in own]
            notebook = nbformat.from_dict(notebook | {"cells": kept})
        return notebook, resources


class _Exporter(HTMLExporter):
    """Export the cells of a notebook as HTML, without a page around them."""

    def __init__(self):
        super().__init__(template_name="basic", preprocessors=[_Parameters, _Streams])

    @pass_context
    def markdown2html(self, context, source: str) -> str:
        """Render Markdown in place of nbconvert's filter of this name, which leaves formulas to a script."""
        return as_html(source)


def write(sources: list[Path], folder: Path, profile: str, rows: list[Row]) -> Path:
    """Write a page for each executed lesson in `folder`, the gallery, the summaries, and the index.

    Returns the index's path. A lesson that failed has a page, too. It ends with the cell that failed, and the index
    says what failed.
    """
    done = {source: executed for source in sources if (executed := kept(source, folder))}
    lessons = [card(source, done.get(source), failed(source, folder)) for source in sources]
    there = [lesson for lesson in lessons if lesson.page and not lesson.error]
    for failure in filter(None, (failed(source, folder) for source in sources)):
        write_whole(failure.path.with_suffix(".html"), lesson_page(nbformat.read(failure.path, as_version=4)))
    for old in {page for source in sources for page in folder.glob(f"{source.stem}*.html")}:
        if not old.with_suffix(".ipynb").exists():
            old.unlink()  # A newer execution has replaced the one that this page shows.
    for executed, before, after in zip(done.values(), [None, *there], [*there[1:], None], strict=False):
        page = lesson_page(nbformat.read(executed.path, as_version=4), before, after)
        write_whole(executed.path.with_suffix(".html"), page)
    write_whole(folder / "gallery.html", gallery.page(PAGES, _style(), sources, lessons))
    write_whole(folder / "summaries.html", summaries.page(PAGES, _style(), sources, lessons))
    page = PAGES.get_template("index.html").render(
        style=_style(), profile=profile, lessons=lessons, executed=[lesson.name for lesson in there], rows=rows,
        words=VERDICTS, opening=drawing(SOLUTIONS / "index", OPENING_DRAWING),
        seconds=sum(one.seconds for one in done.values()),
        minutes=sum(lesson.minutes for lesson in lessons if not lesson.is_lab),
    )  # fmt: skip
    write_whole(folder / "index.html", page)
    return folder / "index.html"


def lesson_page(notebook: NotebookNode, before: Card | None = None, after: Card | None = None) -> str:
    """Return an executed notebook as an HTML page, with links to the lessons before and after it."""
    notebook.metadata.pop("widgets", None)  # Widgets would be drawn by a script that is fetched from the network.
    body, _ = _Exporter().from_notebook_node(notebook)
    page = PAGES.get_template("lesson.html")
    return page.render(
        style=_style() + math_font.style(body), title=title(notebook), body=Markup(body), before=before,
        after=after, scripts=script_hashes(body),
    )  # fmt: skip


def title(notebook: NotebookNode) -> str:
    """Return the first heading of a notebook, or "Lesson" if it has none."""
    lines = [line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "Lesson")


def _style() -> Markup:
    """Return the style sheet, with the colours of code on a light and on a dark background."""
    dark = CODE["dark"].get_style_defs(".highlight")
    return Markup(
        files("benchmarks.experiment").joinpath("page.css").read_text() + CODE["light"].get_style_defs(".highlight")
        + "\n@media screen and (prefers-color-scheme: dark) {\n" + dark + "\n}\n"
    )  # fmt: skip
