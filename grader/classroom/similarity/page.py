"""The page that shows an instructor the most similar pairs of a class, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.figure import Figure

from grader.classroom.inline_picture import inline_picture
from grader.classroom.similarity.compare import Group, Pair
from grader.classroom.templates import template
from grader.common.text import for_page

SHOWN = 10  # pairs of each kind of text
MAX_LINES, MAX_LINE = 400, 200  # of a text on the page, and characters of a line


@dataclass(frozen=True)
class Shown:
    """A pair as the page shows it. Each text is a list of lines, with whether a common part lies in the line."""

    pair: Pair
    texts: tuple[list[tuple[str, bool]], list[tuple[str, bool]]]


def page(groups: list[Group]) -> str:
    """The page as HTML."""
    shown = [(group, [_shown(pair) for pair in group.pairs[:SHOWN]], _picture(group)) for group in groups]
    return template("similar.html").render(groups=shown)


def _shown(pair: Pair) -> Shown:
    documents = (pair.one, pair.other)
    texts = [list(_marked(one.text, lines)) for one, lines in zip(documents, pair.lines, strict=True)]
    return Shown(pair, (texts[0], texts[1]))


def _marked(text: str, common: set[int]) -> Iterator[tuple[str, bool]]:
    lines = text.split("\n")
    for number, line in enumerate(lines[:MAX_LINES]):
        yield for_page(line, MAX_LINE), number in common
    if len(lines) > MAX_LINES:
        yield f"({len(lines) - MAX_LINES} more lines)", False


def _picture(group: Group) -> Markup:
    """How similar all pairs are, as a picture inside the page, with marks for those that are shown."""
    if not group.pairs:
        return Markup()
    similarities = [pair.similarity for pair in group.pairs]
    figure = Figure(figsize=(6.4, 1.8), layout="constrained")
    ax = figure.subplots()
    ax.hist(similarities, bins=40, range=(0, 1), color="#9fb3c8")
    ax.plot(similarities[:SHOWN], [0] * len(similarities[:SHOWN]), "|", color="#b03a2e", ms=14, mew=2, clip_on=False)
    ax.set(xlabel="similarity (the pairs that are shown are marked)", ylabel="pairs", xlim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    alt = f"Similarity of {len(similarities)} pairs. The highest is {similarities[0]:.2f}."
    return inline_picture(figure, alt)
