"""Shows a report in the terminal as a grade card."""

from rich.console import Console
from rich.table import Table

from grader.common.text import for_terminal
from grader.grading.grade import Report


def show(report: Report, console: Console) -> None:
    """Print the grade card."""
    table = Table(title=f"Grade card: {for_terminal(report.submission)}", title_justify="left", show_lines=True)
    table.add_column("Points", justify="right", no_wrap=True)
    table.add_column("What is asked")
    table.add_column("What was seen, and what to change", ratio=1)
    for row in report.rows:
        seen = for_terminal(row.seen) + (f"\n[bold]{for_terminal(row.message)}[/]" if row.message else "")
        colour = "green" if row.status == "met" else "red"
        table.add_row(f"[{colour}]{row.points:g} / {row.max}[/]", row.asks, seen)
    console.print(table)
    verdict = "[bold green]PASSED[/]" if report.passed else "[bold red]NOT PASSED[/]"
    console.print(f"{verdict}  {report.points:g} of 100 points", highlight=False)
    console.print(f"isolation: {report.isolation}", highlight=False)
