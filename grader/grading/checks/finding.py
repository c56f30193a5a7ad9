"""What a check returns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of a check: the share of the points (0 to 1), what was seen, and what to change.

    `advice` is empty with full points. `certain` is true if a mistake was seen that the rest of the run cannot undo. A
    run that did not end well is judged by what is certain alone.
    """

    share: float
    seen: str
    advice: str = ""
    certain: bool = False
