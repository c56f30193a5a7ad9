"""Executed lessons as HTML pages, and an index with the claims' results. No page needs a script, a network or a file.

Formulas become MathML, pictures are part of the page, and all of it has one style, `style.css`.
"""

from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from latex2mathml.converter import convert
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from pygments.formatters import HtmlFormatter

from benchmarks.claims.table import Row
from grader.common.atomic_write import write_whole
from lessons.execute import Executed, Failed, failed, kept

HERE = Path(__file__).parent
PAGES = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
CODE = {scheme: HtmlFormatter(style=style) for scheme, style in {"light": "default", "dark": "github-dark"}.items()}


class _Renderer(IPythonRenderer):
    """Markdown with its formulas as MathML, which browsers draw and screen readers read without a script."""

    def inline_math(self, body: str) -> str:
        return convert(body)

    def block_math(self, body: str) -> str:
        return f'<div class="formula">{convert(body, display="block")}</div>'


class _Exporter(HTMLExporter):
    """The cells of a notebook as HTML, without a page around them."""

    def __init__(self):
        super().__init__(template_name="basic", preprocessors=[CoalesceStreamsPreprocessor])

    @pass_context
    def markdown2html(self, context, source: str) -> str:
        """Replaces nbconvert's filter of that name, which leaves formulas to a script."""
        # Not embed_images: it closes each piece of HTML by itself, and a question's <details> before its answer.
        renderer = _Renderer(escape=False, exclude_anchor_links=True)
        return MarkdownWithMath(renderer=renderer).render(source)


def write(sources: list[Path], folder: Path, profile: str, rows: list[Row]) -> Path:
    """Write a page for each executed lesson in `folder`, and `index.html`, whose path is returned.

    A lesson that failed has a page too, up to the cell that failed. The index says what failed.
    """
    done = {source: executed for source in sources if (executed := kept(source, folder))}
    lessons = [_entry(source, done.get(source), failed(source, folder)) for source in sources]
    there = [lesson for lesson in lessons if lesson["page"] and not lesson["error"]]
    for failure in filter(None, (failed(source, folder) for source in sources)):
        write_whole(failure.path.with_suffix(".html"), lesson_page(nbformat.read(failure.path, as_version=4)))
    for old in {page for source in sources for page in folder.glob(f"{source.stem}*.html")}:
        if not old.with_suffix(".ipynb").exists():
            old.unlink()  # the page of an execution that a newer one has replaced
    for executed, before, after in zip(done.values(), [None, *there], [*there[1:], None], strict=False):
        page = lesson_page(nbformat.read(executed.path, as_version=4), before, after)
        write_whole(executed.path.with_suffix(".html"), page)
    page = PAGES.get_template("index.html").render(
        style=_style(), profile=profile, lessons=lessons, executed=[lesson["name"] for lesson in there],
        seconds=sum(one.seconds for one in done.values()), rows=rows,
    )  # fmt: skip
    write_whole(folder / "index.html", page)
    return folder / "index.html"


def lesson_page(notebook: NotebookNode, before: dict | None = None, after: dict | None = None) -> str:
    """An executed notebook as a page, with ways to the lessons before and after it."""
    notebook.metadata.pop("widgets", None)  # they would be drawn by a script from elsewhere
    body, _ = _Exporter().from_notebook_node(notebook)
    page = PAGES.get_template("lesson.html")
    return page.render(style=_style(), title=title(notebook), body=Markup(body), before=before, after=after)


def title(notebook: NotebookNode) -> str:
    """A notebook's first heading."""
    lines = [line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "Lesson")


def _entry(source: Path, executed: Executed | None, failure: Failed | None) -> dict:
    """What the index says of a lesson: its page, the seconds that it took, and the error if it failed."""
    there = executed or failure
    entry = {"name": source.stem, "title": source.stem, "page": "", "seconds": 0, "error": ""}
    if there:
        named = title(nbformat.read(there.path, as_version=4))
        entry |= {"title": named, "page": there.path.with_suffix(".html").name}
    if executed:
        return entry | {"seconds": executed.seconds}
    return entry | {"error": failure.message if failure else ""}


def _style() -> Markup:
    """The style sheet, with the colours of code on light and on dark paper."""
    dark = CODE["dark"].get_style_defs(".highlight")
    return Markup(
        (HERE / "style.css").read_text() + CODE["light"].get_style_defs(".highlight")
        + "\n@media screen and (prefers-color-scheme: dark) {\n" + dark + "\n}\n"
    )  # fmt: skip
