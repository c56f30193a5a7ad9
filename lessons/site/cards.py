"""What the index says about each lesson: what one will be able to do, how long it takes, and a picture from it."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.notebooks.build import DRAWING, drawing
from lessons.execute import Executed, Failed
from lessons.minutes import NOT_ESTIMATED, minutes

GOAL = re.compile(r"\*\*After this notebook you will (be able to|have)\*\*(.+?)(?=\n\n|\*\*Time|\Z)", re.DOTALL)
OPENING_DRAWING = "one_update.svg"  # the index opens with it, so it is on no card
FIGURE = re.compile(r'<img src="(data:image/[a-z+]+;base64,[^"]+)" alt="([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Card:
    """A lesson. `page` is empty if it was not executed, and `error` says what failed. `picture` is a data address.

    `minutes` is 0 if nobody can estimate them.
    """

    name: str
    title: str
    goal: str
    minutes: int
    page: str = ""
    seconds: float = 0
    error: str = ""
    picture: str = ""
    words: str = ""

    @property
    def is_lab(self) -> bool:
        """Whether it holds further experiments, which the time of the whole course does not include."""
        return "_lab_of_" in self.name


def card(source: Path, executed: Executed | None, failure: Failed | None) -> Card:
    """Return the card of a lesson in `solutions/`, whose execution succeeded, failed, or has not been tried."""
    text = re.sub(r"^# ?", "", source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    there = executed or failure
    notebook = nbformat.read(there.path, as_version=4) if there else None
    picture, words = _picture(source, text, notebook)
    return Card(
        name=source.stem, title=_title(text, source.stem), goal=_goal(text),
        minutes=0 if source.name[:2] in NOT_ESTIMATED else minutes(source),
        page=there.path.with_suffix(".html").name if there else "", seconds=executed.seconds if executed else 0,
        error=failure.message if failure and not executed else "", picture=picture, words=words,
    )  # fmt: skip


def _title(text: str, otherwise: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1] if found else otherwise


def _goal(text: str) -> str:
    """Return what one will be able to do after the lesson, as a sentence. It is empty if the lesson does not say it."""
    found = GOAL.search(text)
    return f"You will {found[1]} {' '.join(found[2].replace('`', '').split())}" if found else ""


def _picture(source: Path, text: str, notebook: NotebookNode | None) -> tuple[str, str]:
    """Return the address of a lesson's first drawing, or else of its first figure, and its words."""
    if named := [name for name in DRAWING.findall(text) if name != OPENING_DRAWING]:
        words, picture = drawing(source, named[0])
        return picture, words
    outputs = [output for cell in (notebook.cells if notebook else []) for output in cell.get("outputs", [])]
    pages = [output.data.get("text/html", "") for output in outputs if "data" in output]
    found = next(filter(None, map(FIGURE.search, pages)), None)
    return (found[1], html.unescape(found[2])) if found else ("", "")
