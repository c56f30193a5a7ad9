"""Estimates how many minutes of learning a lesson takes, from its words, its code and its tasks."""

import re
from math import ceil
from pathlib import Path

import jupytext

WORDS_PER_MINUTE = 180  # plain prose in a language that is not one's own
CODE_LINES_PER_MINUTE = 10
EXERCISE, EXPLORABLE, QUESTION, TASK = 5, 4, 1, 10  # minutes for each; a task is a cell with this tag
NOT_ESTIMATED = ("08", "98", "99")  # Nobody can foresee how long the assignment takes. The others are looked up.
ROUNDED_TO = 5  # minutes; an estimate is not better than that
WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\d.,]*")


def minutes(lesson: Path) -> int:
    """Return the minutes that a lesson in `solutions/` takes, without the waiting for its runs."""
    cells = jupytext.reads(lesson.read_text(encoding="utf-8"), fmt="py:percent").cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    code = [cell for cell in cells if cell.cell_type == "code"]
    given = [cell for cell in code if "exercise" not in cell.metadata]
    lines = [line for cell in given for line in cell.source.splitlines() if line.strip() and line.strip()[0] != "#"]
    took = len(WORD.findall(" ".join(texts))) / WORDS_PER_MINUTE + len(lines) / CODE_LINES_PER_MINUTE
    took += EXERCISE * (len(code) - len(given))
    took += EXPLORABLE * sum("explore(" in cell.source for cell in code)
    took += TASK * sum("task" in cell.metadata.get("tags", []) for cell in code)
    took += QUESTION * sum(text.count("<summary>") for text in texts)
    return ROUNDED_TO * ceil(took / ROUNDED_TO)
