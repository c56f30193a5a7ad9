"""The type of a comparison's table, which the page and the terminal show."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Table:
    """The column heads and the rows, as texts. Each row has as many texts as there are heads."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def told(values: Sequence[float], digits: int) -> str:
    """Median and range over the rounds, as in `0.97 (0.95 to 0.99)`. For a single round only its value is given."""
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    return f"{np.median(values):,.{digits}f} ({np.min(values):,.{digits}f} to {np.max(values):,.{digits}f})"
