"""A comparison's table, for the page and for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Table:
    """Column heads and rows of text, equally long."""

    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def told(values: Sequence[float], digits: int) -> str:
    """`0.97 (0.95 to 0.99)`: median and range over the rounds; of one round its value."""
    if len(values) == 1:
        return f"{values[0]:,.{digits}f}"
    return f"{np.median(values):,.{digits}f} ({np.min(values):,.{digits}f} to {np.max(values):,.{digits}f})"
