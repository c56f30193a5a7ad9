"""The shapes of the course's drawings: worker, host, device, link, image, shard, weights, gradient, and lanes of time.

A drawing is an SVG file that needs nothing else. It has a light and a dark look, and follows the reader's choice. It is
480 units wide. On a phone it is about 358 pixels wide, so text of 15 units is 11 pixels high there.
"""

import math

import drawsvg as svg

from cifar.support import palette

WIDTH, MARGIN = 480, 12
TEXT, SMALL = 15, 13.5  # heights of letters
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
NAMED = {f"worker{rank}": colour for rank, colour in enumerate(palette.WORKERS)} | {
    "weights": palette.WEIGHTS,
    "gradient": palette.GRADIENT,
    "computing": palette.COMPUTING,
    "testing": palette.TESTING,
    "waiting": palette.WAITING,
}


def style() -> str:
    """The style sheet. A class `fill-NAME` fills an area, `on-NAME` writes on it, and `line-NAME` draws a line.

    A class `tint-NAME` writes, or draws a dot, in the colour of the line.
    """
    light = _page(palette.PAPER, palette.CARD, palette.RULE, palette.INK, palette.MUTED, palette.WAITING.line)
    dark = _page(
        palette.DARK_PAPER, palette.DARK_CARD, palette.DARK_RULE, palette.DARK_INK, palette.DARK_MUTED,
        palette.WAITING.dark_line,
    )  # fmt: skip
    for name, colour in NAMED.items():
        light += f".fill-{name}{{fill:{colour.fill};stroke:{colour.line}}}.on-{name}{{fill:{colour.text}}}"
        light += f".line-{name}{{stroke:{colour.line};fill:none}}.tint-{name}{{fill:{colour.line}}}"
        dark += f".fill-{name}{{stroke:{colour.dark_line}}}"
        dark += f".line-{name}{{stroke:{colour.dark_line}}}.tint-{name}{{fill:{colour.dark_line}}}"
    text = f"text{{font-family:{SANS};font-size:{TEXT}px}}.small{{font-size:{SMALL}px}}.bold{{font-weight:600}}"
    math = ".math{font-family:Georgia,'DejaVu Serif',serif;font-style:italic}"
    return f"{text}{math}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _page(paper: str, card: str, rule: str, ink: str, muted: str, stripe: str) -> str:
    """The rules for paper, boxes, words and lines, which are other ones on a dark page."""
    return (
        f".paper{{fill:{paper}}}.card{{fill:{card};stroke:{rule}}}.ink{{fill:{ink}}}.muted{{fill:{muted}}}"
        f".wire{{stroke:{muted};fill:none}}.stripe{{stroke:{stripe}}}"
    )


class Drawing:
    """A drawing of a given height. All places and sizes are in units, and the origin is at the top left.

    `look` is a name in NAMED, or "card" for the box of a host or another thing that holds others.
    """

    def __init__(self, title: str, description: str, height: float):
        self.title, self.description, self.height = title, description, height
        self.svg = svg.Drawing(WIDTH, height, role="img", aria_label=f"{title}. {description}")
        self.svg.append_title(title)
        self.svg.append_css(style())
        stripes = svg.Pattern(7, 7, id="stripes", patternUnits="userSpaceOnUse", patternTransform="rotate(45)")
        stripes.append(svg.Line(0, 0, 0, 7, stroke_width=3, class_="stripe"))
        self.svg.append_def(stripes)
        self.svg.append(svg.Rectangle(0, 0, WIDTH, height, rx=8, class_="paper"))

    def text(self, x: float, y: float, words: str, *classes: str, anchor: str = "middle") -> None:
        """Write a line of text. `y` is the middle of the letters.

        Classes are muted, small, bold, math, on-NAME and tint-NAME.
        """
        size = SMALL if "small" in classes else TEXT
        inked = any(name.startswith(("on-", "tint-")) or name == "muted" for name in classes)
        names = " ".join(classes if inked else (*classes, "ink"))
        self.svg.append(svg.Text(words, size, x, y + 0.35 * size, text_anchor=anchor, class_=names))

    def box(self, x: float, y: float, width: float, height: float, look: str, radius: float = 5) -> None:
        """Draw a box. A box that waits has stripes."""
        names = look if look == "card" else f"fill-{look}"
        if look == "waiting":
            self.svg.append(svg.Rectangle(x, y, width, height, rx=radius, class_="paper"))
            stripes = {"style": "fill:url(#stripes)", "class_": "line-waiting"}
            self.svg.append(svg.Rectangle(x, y, width, height, rx=radius, **stripes))
            return
        self.svg.append(svg.Rectangle(x, y, width, height, rx=radius, class_=names))

    def labelled(self, x: float, y: float, width: float, height: float, look: str, words: str, *classes: str) -> None:
        """Draw a box with words in its middle."""
        self.box(x, y, width, height, look)
        self.text(x + width / 2, y + height / 2, words, f"on-{look}", *classes)

    def label(self, x: float, y: float, words: str, width: float) -> None:
        """Write words on a piece of paper, so that they can be read over stripes. `x` and `y` are the middle."""
        self.svg.append(svg.Rectangle(x - width / 2, y - 11, width, 22, rx=4, class_="paper"))
        self.text(x, y, words, "small")

    def worker(self, x: float, y: float, rank: int, radius: float = 15) -> None:
        """Draw a worker: a disc with its rank."""
        self.svg.append(svg.Circle(x, y, radius, class_=f"fill-worker{rank}"))
        self.text(x, y, f"{rank}", f"on-worker{rank}", "bold")

    def image(self, x: float, y: float, size: float, look: str) -> None:
        """Draw an image of the data set: a small square with a mountain and a sun."""
        self.svg.append(svg.Rectangle(x, y, size, size, rx=1.5, class_=f"fill-{look}"))
        left, low, peak = x + 0.15 * size, y + 0.85 * size, y + 0.4 * size
        mountain = svg.Lines(left, low, x + 0.45 * size, peak, x + 0.75 * size, low, close=True, class_=f"on-{look}")
        self.svg.append(mountain)
        self.svg.append(svg.Circle(x + 0.72 * size, y + 0.28 * size, 0.1 * size, class_=f"on-{look}"))

    def weights(self, x: float, y: float, words: str = "w", size: float = 30) -> None:
        """Draw the weights of a network: a square. `x` and `y` are its middle."""
        self.svg.append(svg.Rectangle(x - size / 2, y - size / 2, size, size, rx=3, class_="fill-weights"))
        self.text(x, y, words, "on-weights", "math")

    def gradient(self, x: float, y: float, words: str = "g", width: float = 40, height: float = 26) -> None:
        """Draw a gradient: a box with round ends. `x` and `y` are its middle."""
        corner = x - width / 2, y - height / 2
        self.svg.append(svg.Rectangle(*corner, width, height, rx=height / 2, class_="fill-gradient"))
        self.text(x, y, words, "on-gradient", "math")

    def wire(self, *points: float, look: str = "wire", width: float = 1.8, dashed: bool = False) -> None:
        """Draw a line through points, which are given as x, y, x, y and so on."""
        names, points = look if look == "wire" else f"line-{look}", [round(number, 1) for number in points]
        dash = {"stroke_dasharray": "5 4"} if dashed else {}
        self.svg.append(svg.Lines(*points, class_=names, stroke_width=width, stroke_linejoin="round", **dash))

    def arrow(self, x0: float, y0: float, x1: float, y1: float, look: str = "wire", width: float = 1.8) -> None:
        """Draw a straight line with a head at its end."""
        self.wire(x0, y0, x1, y1, look=look, width=width)
        length = math.hypot(x1 - x0, y1 - y0)
        along, size = ((x1 - x0) / length, (y1 - y0) / length), 5 + width / 2
        back = x1 - size * along[0], y1 - size * along[1]
        side = 0.7 * size * along[1], -0.7 * size * along[0]
        self.wire(
            back[0] + side[0], back[1] + side[1], x1, y1, back[0] - side[0], back[1] - side[1], look=look, width=width
        )

    def dot(self, x: float, y: float, radius: float, look: str) -> None:
        """Draw a small disc without an outline."""
        self.svg.append(svg.Circle(round(x, 1), round(y, 1), radius, class_=f"tint-{look}"))

    def ellipse(self, x: float, y: float, across: float, down: float) -> None:
        """Draw the outline of an ellipse, like a line of equal height on a map."""
        self.svg.append(svg.Ellipse(x, y, across, down, class_="wire", stroke_width=1, opacity=0.5))

    def station(self, x: float, y: float, words: str, look: str) -> None:
        """Draw a stop of the course's map: a disc with a number."""
        self.svg.append(svg.Circle(x, y, 18, class_=f"fill-{look}"))
        self.text(x, y, words, f"on-{look}", "bold", "small")

    def host(self, x: float, y: float, width: float, height: float, name: str) -> None:
        """Draw a host: a box with its name, which holds devices and workers."""
        self.box(x, y, width, height, "card", radius=8)
        self.text(x + 10, y + 14, name, "muted", "small", anchor="start")

    def markup(self) -> str:
        """Return the content of the SVG file."""
        return self.svg.as_svg() + "\n"
