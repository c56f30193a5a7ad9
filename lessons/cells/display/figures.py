"""The figures of the lessons have one style, are readable in grey, and come with words for those who cannot see them.

Each figure sets the style for what a cell adds to it afterwards. It is the style of the claims' pictures.
"""

import base64
import html
import io
from pathlib import Path

import matplotlib
from IPython.display import HTML, display
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.experiment import plots

DPI = 144  # dots per inch: sharp on a screen that draws each pixel with two by two of its own


def axes(x: str, y: str, size: tuple[float, float] = plots.SIZE) -> tuple[Figure, Axes]:
    """Return a figure with a single panel, and the panel. The labels `x` and `y` include units; `size` is in inches."""
    matplotlib.rcParams.update(plots.STYLE)
    return plots.axes(x, y, size)


def panels(*labels: tuple[str, str], size: tuple[float, float] = plots.SIZE) -> tuple[Figure, list[Axes]]:
    """Return a figure with a row of panels, one for each pair of labels (x, y). What a cell adds has the same style."""
    matplotlib.rcParams.update(plots.STYLE)
    return plots.panels(*labels, size=size)


def show(figure: Figure, alt: str, caption: str) -> None:
    """Display a figure in the notebook, and close it.

    `alt` describes the figure for those who cannot see it. `caption` says what it means, with numbers that were read
    from results. Both are plain text. Raises ValueError if one is missing.
    """
    for name, text in (("alt", alt), ("caption", caption)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a figure needs {name}: say in words what it {'shows' if name == 'alt' else 'means'}")
    page = _page(_png(figure), alt, caption)
    pyplot.close(figure)  # Otherwise the notebook would draw the figure once more, without words.
    display(HTML(page, metadata={"alt": alt}))


def show_file(png: Path, alt: str, caption: str) -> None:
    """Display a PNG file with an alternative text and a caption, like `show` does."""
    display(HTML(_page(png.read_bytes(), alt, caption), metadata={"alt": alt}))


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _page(png: bytes, alt: str, caption: str) -> str:
    """Return an HTML element that contains the image itself. Markup in the two texts is shown as text."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    image = f'<img src="{source}" alt="{html.escape(alt)}" style="max-width: 100%; height: auto">'
    return f'<figure style="margin: 1em 0">{image}<figcaption>{html.escape(caption)}</figcaption></figure>'
