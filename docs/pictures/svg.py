"""Draws boxes and arrows as SVG."""

import contextlib
from collections.abc import Iterator
from xml.etree import ElementTree

# All sizes are in pixels. A picture is 480 pixels wide. A phone shows it 358 pixels wide, and text of 15 pixels is then
# 11 pixels high.
WIDTH, MARGIN, INSET = 480, 8, 14
NAME_PIXELS, TEXT_PIXELS = 17, 15
LABEL_PIXELS, WORDS_PIXELS = 118, 146  # the widths for the name and the words beside a bar
BOX_HEIGHT, VALUE_HEIGHT, HEADING_HEIGHT, ARROW_PIXELS, GAP = 46, 32, 34, 22, 10
# Text stands on a fill of its own, so that the page may be white or dark. Arrows are grey, which both show.
DARK, LIGHT, PALE = (
    ("#1f4e79", "#6ea8dc", "#ffffff"),
    ("#d3e5f6", "#6ea8dc", "#10263c"),
    ("#eef4fb", "#a9c6e3", "#10263c"),
)
ARROW = "#7d8590"
SANS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, Menlo, Consolas, monospace"


class Picture:
    """This is an SVG picture that grows downwards from `y`."""

    def __init__(self, title: str, description: str):
        self.y: float = MARGIN
        self.left, self.width = MARGIN, WIDTH - 2 * MARGIN
        self.svg = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
        self.svg.set("aria-labelledby", "title description")
        ElementTree.SubElement(self.svg, "title", id="title").text = title
        ElementTree.SubElement(self.svg, "desc", id="description").text = description

    def row(self, names: list[str], look: tuple = DARK, *, chained: bool = False) -> None:
        """Draw boxes with names side by side. In a chain, an arrow leads from each box to the next."""
        gap = ARROW_PIXELS + 4 if chained else GAP
        width = (self.width - gap * (len(names) - 1)) / len(names)
        for index, name in enumerate(names):
            left = self.left + index * (width + gap)
            self._box(left, width, BOX_HEIGHT, look)
            self._text(left + width / 2, BOX_HEIGHT, name, look, "middle", bold=True)
            if chained and index:
                self._arrow(left - gap + 4, self.y + BOX_HEIGHT / 2, left - 4, self.y + BOX_HEIGHT / 2)
        self.y += BOX_HEIGHT

    def labelled(self, name: str, words: str, look: tuple = DARK, *, mono: bool = False, dashed: bool = False) -> None:
        """Draw a box with its name at the left and words at the right."""
        box = self._box(self.left, self.width, BOX_HEIGHT, look)
        if dashed:
            box.set("stroke-dasharray", "6 4")
        self._text(self.left + 16, BOX_HEIGHT, name, look, "start", bold=True)
        self._text(self.left + self.width - 16, BOX_HEIGHT, words, look, "end", mono=mono)
        self.y += BOX_HEIGHT

    def bar(self, name: str, words: str, share: float) -> None:
        """Draw a bar that fills this share of its room, with its name at the left of it and words at the right."""
        left, room = self.left + LABEL_PIXELS, self.width - LABEL_PIXELS - WORDS_PIXELS
        self._box(left, room, BOX_HEIGHT, PALE)
        self._box(left, share * room, BOX_HEIGHT, LIGHT)
        self._text(self.left, BOX_HEIGHT, name, LIGHT, "start", bold=True)
        self._text(left + room + 12, BOX_HEIGHT, words, LIGHT, "start")
        self.y += BOX_HEIGHT + GAP

    def value(self, name: str, *, mono: bool = True) -> None:
        """Draw a value that one step hands to the next."""
        width = 168
        self._box((WIDTH - width) / 2, width, VALUE_HEIGHT, LIGHT, radius=VALUE_HEIGHT / 2)
        self._text(WIDTH / 2, VALUE_HEIGHT, name, LIGHT, "middle", mono=mono)
        self.y += VALUE_HEIGHT

    def arrow(self) -> None:
        """Draw an arrow downwards."""
        self._arrow(WIDTH / 2, self.y + 4, WIDTH / 2, self.y + ARROW_PIXELS - 4)
        self.y += ARROW_PIXELS

    def hand_on(self, value: str | None) -> None:
        """Draw the way to the next step, and on it the value that this step hands on, if there is one."""
        self.arrow()
        if value:
            self.value(value)
            self.arrow()

    @contextlib.contextmanager
    def panel(self, name: str) -> Iterator[None]:
        """Draw a panel with a heading around all that is drawn in the `with` block."""
        panel = self._box(self.left, self.width, 0, PALE)
        self._text(self.left + INSET, HEADING_HEIGHT, name, PALE, "start", mono=True)
        self.y += HEADING_HEIGHT
        self.left, self.width = MARGIN + INSET, WIDTH - 2 * (MARGIN + INSET)
        yield
        self.y += INSET
        self.left, self.width = MARGIN, WIDTH - 2 * MARGIN
        panel.set("height", f"{self.y - float(panel.get('y')):g}")

    def text(self) -> str:
        """Return the content of the file."""
        height = f"{self.y + MARGIN:g}"
        self.svg.attrib |= {"viewBox": f"0 0 {WIDTH} {height}", "width": f"{WIDTH}", "height": height}
        ElementTree.indent(self.svg)
        return ElementTree.tostring(self.svg, encoding="unicode") + "\n"

    def _box(self, left: float, width: float, height: float, look: tuple, radius: float = 8) -> ElementTree.Element:
        numbers = {"x": left, "y": self.y, "width": width, "height": height, "rx": radius}
        attributes = {name: f"{number:g}" for name, number in numbers.items()}
        return ElementTree.SubElement(self.svg, "rect", attributes, fill=look[0], stroke=look[1])

    def _text(
        self, x: float, height: float, text: str, look: tuple, anchor: str, *, bold: bool = False, mono: bool = False
    ) -> None:  # fmt: skip
        """Draw a line of text in the middle of a box of this height."""
        size = NAME_PIXELS if bold else TEXT_PIXELS
        attributes = {
            "x": f"{x:g}", "y": f"{self.y + height / 2 + 0.35 * size:g}", "fill": look[2], "text-anchor": anchor,
            "font-family": MONO if mono else SANS, "font-size": f"{size}", "font-weight": "600" if bold else "400",
        }  # fmt: skip
        ElementTree.SubElement(self.svg, "text", attributes).text = text

    def _arrow(self, x0: float, y0: float, x1: float, y1: float) -> None:
        if x0 == x1:
            head = f"M{x1 - 6:g} {y1 - 6:g}L{x1:g} {y1:g}L{x1 + 6:g} {y1 - 6:g}"
        else:
            head = f"M{x1 - 6:g} {y1 - 6:g}L{x1:g} {y1:g}L{x1 - 6:g} {y1 + 6:g}"
        look = {"fill": "none", "stroke": ARROW, "stroke-width": "2.5", "stroke-linecap": "round"}
        ElementTree.SubElement(self.svg, "path", look, d=f"M{x0:g} {y0:g}L{x1:g} {y1:g}{head}")
