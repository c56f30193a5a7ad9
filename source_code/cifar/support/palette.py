"""The course's colours. Each colour has one meaning in drawings, the live view and the grade card.

Plots that show no workers use the workers' colours for their lines, and say beside each line what it is.

The fills of the four workers go from dark to light, so they can be told apart in grey print and by people who are
colour-blind. Contrasts are those of the Web Content Accessibility Guidelines 2.2: text has at least 4.5, lines 3.
"""

from typing import NamedTuple


class Colour(NamedTuple):
    """A fill, the text that stands on it, and the lines of the same meaning on a light page and on a dark page."""

    fill: str
    text: str
    line: str
    dark_line: str


WORKERS = (
    Colour("#0b3c8c", "#ffffff", "#0b3c8c", "#82b1ff"),
    Colour("#b3450f", "#ffffff", "#b3450f", "#ff9d6c"),
    Colour("#23a094", "#000000", "#128077", "#4fd1c5"),
    Colour("#f2bd3b", "#000000", "#8a6a00", "#ffd866"),
)
WEIGHTS = Colour("#3d4b5c", "#ffffff", "#3d4b5c", "#b9c6d6")
GRADIENT = Colour("#7b3fa0", "#ffffff", "#7b3fa0", "#cfa3ee")  # also the time in which gradients are exchanged
COMPUTING = Colour("#c3cfdc", "#000000", "#5c6b7b", "#c3cfdc")
TESTING = Colour("#7f90a4", "#000000", "#5c6b7b", "#7f90a4")
WAITING = Colour("#ffffff", "#000000", "#6b7683", "#a5b0bd")  # is drawn with stripes, as nothing happens

PAPER, CARD, INK, MUTED, RULE = "#ffffff", "#f5f7f9", "#1b2430", "#566172", "#d3dae2"  # of a light page
DARK_PAPER, DARK_CARD, DARK_INK, DARK_MUTED, DARK_RULE = "#12161b", "#1b2128", "#e7ebf0", "#a5b0bd", "#3b4551"
