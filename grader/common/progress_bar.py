"""The bar of long work that is counted in pieces, in one look for all commands."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def counting(console: Console) -> Progress:
    """A bar with what is done, how many of how many, and since when; none where nobody watches a terminal."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
