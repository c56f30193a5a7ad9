"""A learner's first hour in a real browser: Start Here, an exercise that fails and is repaired, and the assignment.

Everything runs in a learner's copy of the course, which has no solutions. Answers are typed like a learner types them.
"""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from grader.notebooks import build
from tests.browser.conftest import lab
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow
MINUTES = 60_000
WRONG = "def updates_made(images, batch, workers, epochs):\n    return epochs * images // batch\n"
REFERENCE = REPOSITORY / "solutions" / "assignment" / "train.py"


@pytest.fixture(scope="module")
def address(learner: Path, cifar10: Path) -> Iterator[str]:
    with lab(learner) as url:
        yield url


def opened(page: Page, address: str, name: str) -> Locator:
    """Open the notebook of this name, and wait until its kernel is ready."""
    page.goto(re.sub(r"tree/[^?]*", f"tree/{name}.ipynb", address) + "&reset")
    expect(page.locator(".jp-Notebook .jp-Cell").first).to_be_visible()
    expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").first).to_be_visible()
    return page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")


def menu(page: Page, *entries: str) -> None:
    for entry in entries:
        page.get_by_role("menuitem", name=entry, exact=True).click()


def run_all(page: Page, notebook: Locator) -> None:
    """Run all cells. This is repeated if JupyterLab did not yet take the notebook for the current one."""
    for _ in range(5):
        notebook.locator(".jp-Cell").first.click()
        menu(page, "Run", "Run All Cells")
        try:
            expect(notebook.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]+\]")).first).to_be_visible(
                timeout=5000
            )
            return
        except AssertionError:
            continue
    pytest.fail("no cell has been run")


def cell(notebook: Locator, beginning: str) -> Locator:
    """Return the cell with this text, and scroll to it. JupyterLab draws only the cells that can be seen."""
    found = notebook.locator(".jp-Cell", has_text=beginning).last
    for _ in range(200):
        if found.count():
            break
        notebook.locator(".jp-WindowedPanel-outer").evaluate("panel => panel.scrollBy(0, 300)")
        time.sleep(0.05)
    found.scroll_into_view_if_needed()
    return found


def test_start_here_runs_with_lanes_that_move_and_a_curve(
    page: Page, address: str, elsewhere: list[str], shot: Callable
):
    notebook = opened(page, address, "00_start_here")
    expect(notebook.locator("h1")).to_have_text(re.compile("00 Start here"))
    expect(notebook.get_by_text("Python 3 (ipykernel)")).to_be_visible()
    shot("start-here")
    run_all(page, notebook)
    view = cell(notebook, 'horovodrun("cifar_base.py", workers').locator("img[alt*='of 4 epochs']")
    seen, until = set(), time.monotonic() + 180
    while "4" not in seen and time.monotonic() < until:
        seen |= set(re.findall(r"^(\d+) of 4 epochs", view.get_attribute("alt") if view.count() else ""))
        time.sleep(0.2)
    assert seen == {"0", "1", "2", "3", "4"}, f"the view showed {seen} of 4 epochs"
    view.first.scroll_into_view_if_needed()
    expect(view.first).to_have_attribute("alt", re.compile(r"Test accuracy \d+\.\d %"))
    shot("start-here-curve")
    assert not notebook.locator(".jp-RenderedText[data-mime-type*='error']").count()
    assert not elsewhere


def typed(page: Page, found: Locator, source: str, then: str = "Shift+Enter") -> None:
    """Replace the text of a cell, and press the key `then`, which runs the cell if nothing else is said."""
    found.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(source)
    page.keyboard.press(then)


def ran(page: Page, found: Locator) -> str:
    """Run a cell, and return its output."""
    prompt = found.locator(".jp-InputPrompt")
    before = prompt.inner_text()
    found.locator(".jp-Cell-inputWrapper").click()
    page.keyboard.press("Control+Enter")
    expect(prompt).not_to_have_text(before)
    expect(prompt).to_have_text(re.compile(r"\[\d+\]"))
    return found.locator(".jp-OutputArea").inner_text()


def answers(name: str) -> dict[str, str]:
    """Return the right answers of a lesson by exercise."""
    notebook = build.solved(REPOSITORY / "solutions" / f"{name}.py")
    return {one.metadata.nbgrader.grade_id: one.source for one in solution_cells(notebook)}


def solution_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [one for one in notebook.cells if one.metadata.get("nbgrader", {}).get("solution")]


def test_a_learner_has_validate_and_the_assignment_list_but_no_formgrader(page: Page, address: str):
    page.goto(address)  # The server stores the token as a cookie.
    assert {path: answered(page, address, path) for path in ("courses", "formgrader")} == {
        "courses": True,
        "formgrader": False,
    }
    expect(page.get_by_role("button", name="Validate").first).to_be_visible()


def answered(page: Page, address: str, path: str) -> bool:
    return page.request.get(re.sub(r"lab/.*", path, address)).ok


def test_an_exercise_fails_is_mended_and_validates(page: Page, address: str, shot: Callable):
    name = "07_famous_results"
    right, notebook = answers(name), opened(page, address, "07_famous_results")
    typed(page, cell(notebook, "def updates_made("), WRONG)
    said = ran(page, cell(notebook, 'check_public("updates_made"'))
    assert re.search("[0-2] of 3 points", said) and "Traceback" not in said
    shot("exercise-wrong")
    for exercise, source in right.items():
        typed(page, cell(notebook, f"def {exercise}("), source)
        assert re.search(r"(\d) of \1 points", ran(page, cell(notebook, f'check_public("{exercise}"')))
    shot("exercise-right")
    notebook.get_by_role("button", name="Validate").click()
    dialog = page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("Success", timeout=5 * MINUTES)
    shot("exercise-validated")


def write_program(learner: Path) -> None:
    """Write the program for the assignment, as a learner has done before the notebook of lesson 08 is run."""
    program = learner / "notebooks" / "my_assignment" / "train.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(REFERENCE.read_text())


def test_the_assignment_is_graded_in_its_notebook(page: Page, address: str, learner: Path, shot: Callable):
    write_program(learner)
    notebook = opened(page, address, "08_assignment")
    run_all(page, notebook)
    card = cell(notebook, "report = grade(")
    expect(card).to_contain_text("PASSED  100 of 100 points", timeout=5 * MINUTES)
    assert "NOT PASSED" not in card.inner_text()
    preview = card.locator("img[alt*='certificate']")
    expect(preview).to_be_visible()
    preview.scroll_into_view_if_needed()
    shot("assignment-graded")
    card.get_by_role("link", name="report.html").click()
    report = page.frame_locator(".jp-HTMLViewer iframe")
    expect(report.get_by_text("100 of 100").first).to_be_visible()
    shot("assignment-report")
    report.locator("figure").first.scroll_into_view_if_needed()
    shot("assignment-report-plot")
