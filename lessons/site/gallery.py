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
    seen: set[str] = set()  # a drawing that a later lesson shows again is left out there
    parts = []
    for source, lesson in zip(sources, lessons, strict=True):
        found = {one[0]: one for one in SHOWN.finditer(source.read_text(encoding="utf-8")) if one[0] not in seen}
        seen |= found.keys()
        if found:
            parts.append({"lesson": lesson, "shown": [_shown(source, one) for one in found.values()]})
    explorables = "".join(one["html"] for part in parts for one in part["shown"] if one["html"])
    return pages.get_template("gallery.html").render(style=style, parts=parts, scripts=script_hashes(explorables))


def _shown(source: Path, found: re.Match) -> dict:
    """Return the address and the words of a drawing, or the HTML of an explorable."""
    if name := found["explorable"]:
        return {"html": Markup((BUILT / f"{name}.html").read_text(encoding="utf-8")), "image": "", "words": ""}
    words, image = drawing(source, found["drawing"])
    return {"html": "", "image": image, "words": words}
