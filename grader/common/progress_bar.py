"""The progress bar of all commands, for long work that is counted in pieces."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def counting(console: Console) -> Progress:
    """A bar with a description, the number of finished pieces, and the time. It is hidden if there is no terminal."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
