"""Makes the page of all summaries: for each lesson a drawing, its sentences, and the lines of code to keep.

Printed, each lesson is one sheet of paper.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from grader.notebooks import build
from lessons.site import math_font
from lessons.site.cards import Card
from lessons.site.markdown import as_html

SECTION = re.compile(
    r"^## Summary\n\n(?P<sentences>(?:- .+\n(?:  .+\n)*)+)(?P<more>(?:.|\n)*?)(?=^## |\Z)", re.MULTILINE
)
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Summary:
    """A lesson's summary in Markdown: its sentences as a list, and the lines of code in a fence."""

    sentences: str
    code: str


def page(pages: Environment, style: Markup, sources: list[Path], lessons: list[Card]) -> str:
    """Return the page. `lessons` has the card of each of the `sources`. Lessons without such a summary are left out."""
    parts = []
    for source, lesson in zip(sources, lessons, strict=True):
        if summary := read(source):
            text = Markup(as_html(f"{summary.sentences}\n{summary.code}"))
            parts.append({"lesson": lesson, "text": text})
    style += math_font.style("".join(part["text"] for part in parts))
    return pages.get_template("summaries.html").render(style=style, parts=parts)


def read(source: Path) -> Summary | None:
    """Return the summary of a lesson in `solutions/`. None if it has none with lines of code."""
    cells = [cell.source for cell in build.solved(source).cells if cell.cell_type == "markdown"]
    section = next(filter(None, map(SECTION.search, (f"{cell}\n" for cell in cells))), None)
    code = CODE.search(section["more"]) if section else None
    return Summary(section["sentences"], code[0]) if code else None
