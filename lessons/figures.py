"""Figures of the lessons: one style, readable in grey, and shown with words for those who cannot see them.

Importing this module sets the style (that of the claims' pictures) for everything that matplotlib draws from then on.
"""

import base64
import html
import io
from pathlib import Path

import matplotlib
from IPython.display import HTML, display
from matplotlib import pyplot
from matplotlib.figure import Figure

from benchmarks.experiment.plots import SIZE, STYLE, axes, panels

__all__ = ["axes", "panels", "show"]

DPI = 144  # sharp on a screen that shows two pixels for one
PAGE = {
    "figure.figsize": SIZE, "figure.constrained_layout.use": True,
    "svg.hashsalt": "lessons",  # the same figure gives the same bytes
}  # fmt: skip
matplotlib.rcParams.update(STYLE | PAGE)


def show(figure: Figure, alt: str, caption: str) -> None:
    """Display a figure in the notebook, and close it.

    `alt` says what is to be seen for those who cannot see it, `caption` what it means, with numbers that were read from
    results. Both are plain text. Raises ValueError if one is missing.
    """
    for name, text in (("alt", alt), ("caption", caption)):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a figure needs {name}: say in words what it {'shows' if name == 'alt' else 'means'}")
    page = _page(_png(figure), alt, caption)
    pyplot.close(figure)  # or the notebook would draw it once more, without words
    display(HTML(page, metadata={"alt": alt}))


def show_file(png: Path, alt: str, caption: str) -> None:
    """Display a PNG file, in the same way."""
    display(HTML(_page(png.read_bytes(), alt, caption), metadata={"alt": alt}))


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _page(png: bytes, alt: str, caption: str) -> str:
    """An HTML element that holds the image itself; what the texts contain stays text."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    image = f'<img src="{source}" alt="{html.escape(alt)}" style="max-width: 100%; height: auto">'
    return f'<figure style="margin: 1em 0">{image}<figcaption>{html.escape(caption)}</figcaption></figure>'
