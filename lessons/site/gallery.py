"""Makes the page of all drawings and explorables, in the order of the lessons that use them."""

import re
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from grader.notebooks.build import drawing
from lessons.explorables import BUILT, script_hashes
from lessons.site.cards import Card

# A line of a lesson's text that shows a drawing or an explorable.
SHOWN = re.compile(r"^# !\[\]\(drawings/(?P<drawing>[\w.]+)\)$|^explore\(\"(?P<explorable>\w+)\"\)$", re.MULTILINE)


def page(pages: Environment, style: Markup, sources: list[Path], lessons: list[Card]) -> str:
    """Return the page. `lessons` has the card of each of the `sources`."""
    parts = [
        {"lesson": lesson, "shown": shown}
        for source, lesson in zip(sources, lessons, strict=True)
        if (shown := [_shown(source, found) for found in SHOWN.finditer(source.read_text(encoding="utf-8"))])
    ]
    explorables = "".join(one["html"] for part in parts for one in part["shown"] if one["html"])
    return pages.get_template("gallery.html").render(style=style, parts=parts, scripts=script_hashes(explorables))


def _shown(source: Path, found: re.Match) -> dict:
    """Return the address and the words of a drawing, or the HTML of an explorable."""
    if name := found["explorable"]:
        return {"html": Markup((BUILT / f"{name}.html").read_text(encoding="utf-8")), "image": "", "words": ""}
    words, image = drawing(source, found["drawing"])
    return {"html": "", "image": image, "words": words}
