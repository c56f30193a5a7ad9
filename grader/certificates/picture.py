"""Draws a certificate for printing, on A4 in landscape: name, course, grade, date and what was shown."""

import textwrap
from datetime import UTC, datetime
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from grader.certificates.credential import Award
from grader.common.text import one_line

INK, QUIET, LINE = "#0b3c5d", "#566172", "#b8c4d0"
LINE_LENGTH, MAX_LINES = 105, 5  # characters and lines of what was shown, so that it stays inside the frame
MAX_NAME = 60  # characters of a name, so that it fits on one line


def preview(shown: tuple[str, ...], target: Path) -> None:
    """Write what a learner's certificate may look like. Nobody signs it. `shown` is what the run has shown."""
    draw(Award("Your name", "", "your points", shown, datetime.now(UTC)), None, target)


def draw(award: Award, issuer: str | None, target: Path) -> None:
    """Write the picture as PNG. Without an issuer it is marked as a preview that nobody has signed."""
    figure = Figure(figsize=(11.69, 8.27))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.axis("off")
    for inset, width in ((0.03, 2.5), (0.04, 0.8)):
        ax.add_patch(_frame(inset, width))
    rows = [
        (0.83, "Certificate", 40, INK), (0.75, "This certifies that", 15, QUIET),
        (0.665, one_line(award.name)[:MAX_NAME], 32, INK), (0.595, "has completed", 15, QUIET),
        (0.53, award.course, 24, INK), (0.465, f"with {award.grade}", 17, INK),
    ]  # fmt: skip
    rows += [(0.39 - 0.037 * number, line, 11.5, QUIET) for number, line in enumerate(_lines(award))]
    for height, text, size, colour in rows:
        ax.text(0.5, height, text, size=size, color=colour, ha="center", va="center", parse_math=False)
    _foot(ax, award, issuer)
    if issuer is None:
        ax.text(
            0.5, 0.5, "PREVIEW, NOT SIGNED", size=54, color="#d1495b", alpha=0.35, rotation=27, ha="center", va="center"
        )
    figure.savefig(target, format="png", dpi=150)


def _frame(inset: float, width: float) -> Rectangle:
    size = 1 - 2 * inset
    return Rectangle((inset, inset), size, size, fill=False, edgecolor=INK, linewidth=width)


def _lines(award: Award) -> list[str]:
    return textwrap.wrap(" ".join(award.shown), LINE_LENGTH)[:MAX_LINES]


def _foot(ax, award: Award, issuer: str | None) -> None:
    until = f", valid until {award.until:%d %B %Y}" if award.until else ""
    ax.plot([0.1, 0.9], [0.17, 0.17], color=LINE, linewidth=0.8)
    ax.text(0.1, 0.13, f"{award.since:%d %B %Y}{until}", size=13, color=INK, va="center")
    ax.text(0.9, 0.13, one_line(issuer or "")[:MAX_NAME], size=13, color=INK, va="center", ha="right", parse_math=False)
    note = "This file holds a signed Open Badges 3.0 credential: python -m grader verify FILE"
    ax.text(0.5, 0.075, note if issuer else "", size=9, color=QUIET, ha="center", va="center")
