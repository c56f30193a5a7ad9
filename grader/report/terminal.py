"""Shows a report in the terminal as a grade card."""

from rich.console import Console
from rich.table import Table

from grader.common.text import for_terminal
from grader.grading.grade import Report
from grader.grading.status import IN_WORDS

COLOURS = {"met": "green", "unmet": "red", "excused": "yellow", "not_judged": "dim"}  # by status


def show(report: Report, console: Console) -> None:
    """Print the grade card."""
    table = Table(title=f"Grade card: {for_terminal(report.submission)}", title_justify="left", show_lines=True)
    table.add_column("Points", justify="right", no_wrap=True)
    table.add_column("What is asked")
    table.add_column("What was seen, and what to change", ratio=1)
    for row in report.rows:
        seen = for_terminal(row.seen) + (f"\n[bold]{for_terminal(row.message)}[/]" if row.message else "")
        points = f"[{COLOURS[row.status]}]{IN_WORDS[row.status]}\n{row.points:g} / {row.max}[/]"
        table.add_row(points, row.asks, seen)
    console.print(table)
    if report.needs:
        console.print("A pass needs:")
    for sentence, shown in report.needs.items():
        console.print(f"  {'[green]✓' if shown else '[red]✗'} {sentence}[/]", highlight=False)
    verdict = "[bold green]PASSED[/]" if report.passed else "[bold red]NOT PASSED[/]"
    console.print(f"{verdict}  {report.points:g} of 100 points. {report.limit}".rstrip(), highlight=False)
    console.print(f"isolation: {report.isolation}", highlight=False)
