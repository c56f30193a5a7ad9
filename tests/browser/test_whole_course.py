"""The whole course in JupyterLab, as a learner works through it: from 00 to a passed 08, and on to 10.

The learner types a right answer into each exercise, and then runs all cells. `runs/browser/minutes.md` tells how long
the cells of each lesson took.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Page

from grader import exercises
from grader.notebooks.build import SOLUTIONS, lessons
from tests.browser.conftest import SHOTS, lab
from tests.browser.test_learner import answers, cell, menu, opened, run_all, typed, write_program

pytestmark = pytest.mark.slow
LONGEST = 30 * 60  # seconds for all cells of a lesson, on a busy machine
NAMES = [path.stem for path in lessons(SOLUTIONS) if path.stem < "11"]


@pytest.fixture(scope="module")
def address(learner: Path, cifar10: Path) -> Iterator[str]:
    write_program(learner)
    with lab(learner) as url:
        yield url


@pytest.fixture(scope="module")
def minutes() -> Iterator[dict[str, float]]:
    """Collect the minutes of each lesson, and write them as a table."""
    found: dict[str, float] = {}
    yield found
    rows = [f"| {name} | {took:.1f} |" for name, took in found.items()]
    SHOTS.mkdir(parents=True, exist_ok=True)
    (SHOTS / "minutes.md").write_text("\n".join(["| lesson | minutes of its cells |", "| --- | --- |", *rows, ""]))


@pytest.mark.parametrize("name", NAMES)
def test_all_cells_of_a_lesson_run_with_right_answers(
    page: Page, address: str, learner: Path, elsewhere: list[str], minutes: dict[str, float], name: str
):
    notebook = opened(page, address, name)
    for exercise, source in answers(name).items():
        typed(page, cell(notebook, f"def {exercises.get(exercise).function}("), source, then="Escape")
    began = time.monotonic()
    run_all(page, notebook)
    ran = finished(page, learner / "notebooks" / f"{name}.ipynb")
    minutes[name] = (time.monotonic() - began) / 60
    assert [one.source for one in ran if one.execution_count is None] == []
    assert [one.source for one in ran if any(output.output_type == "error" for output in one.outputs)] == []
    said = "\n".join(str(output.get("text") or output.get("data")) for one in ran for output in one.outputs)
    assert len(re.findall(r"\b(\d+) of \1 points", said)) >= len(answers(name))
    assert name != "08_assignment" or re.search(r"PASSED\s+100 of 100 points", said)
    assert not elsewhere
    menu(page, "Kernel", "Shut Down Kernel")  # the next lesson needs the memory


def finished(page: Page, path: Path) -> list[nbformat.NotebookNode]:
    """Save the notebook again and again, until all its cells have run or one has failed. Return its code cells."""
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        page.keyboard.press("Control+s")
        time.sleep(2)
        cells = [one for one in nbformat.read(path, 4).cells if one.cell_type == "code" and one.source.strip()]
        failed = any(output.output_type == "error" for one in cells for output in one.outputs)
        if failed or all(one.execution_count for one in cells):
            return cells
    pytest.fail(f"{path.name} has not run to its end")
