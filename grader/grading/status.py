"""The four things that can be said of a rubric line, and how people read them in the terminal and on pages."""

from typing import Literal

Status = Literal["met", "unmet", "excused", "not_judged"]
IN_WORDS: dict[Status, str] = {
    "met": "✓ met", "unmet": "✗ not met", "excused": "↳ excused", "not_judged": "– not judged",
}  # fmt: skip
