"""The table of all claims: where each is taught, how it is measured, and what came of it."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks import claims, series


@dataclass(frozen=True)
class Row:
    """A claim's line of the table; `verdict` is empty while an arm has no result, which `sentence` then says."""

    id: str
    statement: str
    source: str
    lesson: str
    command: str
    folder: str
    seeds: int
    verdict: str
    sentence: str
    provisional: str
    machine: str


def rows() -> list[Row]:
    """A row a claim, in the order of their ids."""
    return [_row(series.saved(claims.get(id))) for id in claims.IDS]


def _row(saved: series.Series) -> Row:
    claim, verdict = saved.claim, saved.verdict
    sentence = verdict.sentence if verdict else f"no result yet for {', '.join(saved.missing)}"
    return Row(
        claim.id, claim.statement, claim.source, claim.lesson, claim.command, f"benchmarks/results/{claim.id}",
        saved.seeds, verdict.word if verdict else "", sentence, saved.provisional, saved.machine,
    )  # fmt: skip


def show(console: Console) -> bool:
    """Print the table; returns whether every claim has a verdict."""
    table = Table("id", "lesson", "seeds", "verdict", "what was seen", title="The claims of the course")
    found = rows()
    for row in found:
        verdict = f"{row.verdict} (provisional: {row.provisional})" if row.verdict and row.provisional else row.verdict
        table.add_row(row.id, row.lesson, str(row.seeds), verdict or "none", row.sentence)
    console.print(table)
    without = [row.id for row in found if not row.verdict]
    if without:
        console.print(f"no verdict yet: {', '.join(without)}. To measure one: python -m benchmarks {without[0]}")
    return not without
