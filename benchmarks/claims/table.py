"""The table of all claims: the lesson that teaches each, the command that measures it, and its result."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import claims
from benchmarks.claims import sentences
from benchmarks.experiment import runner

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A claim's row of the table.

    While a variant has no result, `verdict` is empty and `sentence` names the variants without a result. `cell` is the
    number, counted from 1, of the notebook's cell that shows the saved result. `cell_id` is that cell's id.
    """

    id: str
    statement: str
    source: str
    lesson: str
    cell: int
    cell_id: str
    command: str
    folder: str
    seeds: int
    verdict: str
    sentence: str
    provisional: str
    machine: str


def rows() -> list[Row]:
    """One row per claim, in the order of the ids."""
    return [_row(runner.saved(claims.get(id))) for id in claims.IDS]


def _row(saved: runner.Series) -> Row:
    claim, verdict = saved.claim, saved.verdict
    sentence = sentences.shortest(saved) if verdict else f"no result yet for {', '.join(saved.missing)}"
    cell, cell_id = _cells(claim.lesson)[claim.id]
    return Row(
        id=claim.id, statement=claim.statement, source=claim.source, lesson=claim.lesson, cell=cell, cell_id=cell_id,
        command=claim.command, folder=f"benchmarks/results/{claim.id}", seeds=saved.seeds,
        verdict=verdict.word if verdict else "", sentence=sentence, provisional=saved.provisional,
        machine=saved.machine,
    )  # fmt: skip


@cache
def _cells(lesson: str) -> dict[str, tuple[int, str]]:
    """The number and id of the cell that shows a claim's saved result, by claim.

    A claim is missing if no cell of the lesson shows its result.
    """
    cells = json.loads((NOTEBOOKS / f"{lesson}.ipynb").read_text(encoding="utf-8"))["cells"]
    return {
        id: (number, cell["id"])
        for number, cell in enumerate(cells, 1)
        for id in claims.IDS
        if f'saved("{id}"' in "".join(cell["source"])
    }


def show(console: Console) -> bool:
    """Print the table. Returns whether every claim has a verdict."""
    table = Table("id", "lesson, cell", title="The claims of the course")
    table.add_column("experiment, result", no_wrap=True)
    for head in ("seeds", "verdict", "provisional"):
        table.add_column(head)
    found = rows()
    for row in found:
        verdict, why = (row.verdict, row.provisional) if row.verdict else ("none yet", row.sentence)
        where = f"{row.command}\n{row.folder}"
        table.add_row(row.id, f"{row.lesson[:2]}, {row.cell}", where, str(row.seeds), verdict, why)
    console.print(table)
    console.print("What was seen: the same command with --show.")
    without = [row.id for row in found if not row.verdict]
    if without:
        console.print(f"no verdict yet: {', '.join(without)}. To measure one: python -m benchmarks {without[0]}")
    return not without
