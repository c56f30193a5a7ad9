"""Puts a figure into an HTML page that needs no other file."""

import base64
import io

from markupsafe import Markup
from matplotlib.figure import Figure


def inline_picture(figure: Figure, alt: str) -> Markup:
    """An `img` element with the figure as PNG. `alt` says what it shows, and is escaped."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    encoded = base64.b64encode(content.getvalue()).decode()
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(alt, encoded)
