"""Each explorable answers to the mouse, the keyboard and a screen reader, on the page and in JupyterLab."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Browser, Locator, Page, expect

from grader.notebooks.build import SOLUTIONS, lessons
from lessons import explorables
from lessons.explorables.build import evaluate
from lessons.site import gallery, pages
from tests.browser.conftest import lab
from tests.browser.test_learner import cell, opened, run_all

pytestmark = pytest.mark.slow
SIZES = {"phone": {"width": 390, "height": 844}, "desk": {"width": 1200, "height": 900}}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the gallery, which has all explorables."""
    sources = lessons(SOLUTIONS)
    entries = [{"title": source.stem, "page": ""} for source in sources]
    path = tmp_path_factory.mktemp("gallery") / "gallery.html"
    path.write_text(gallery.page(pages.PAGES, pages._style(), sources, entries), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def complaints(page: Page) -> list[str]:
    """Collect the errors and warnings that the page writes to the browser's console."""
    found = []
    page.on("console", lambda said: found.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def explorable(page: Page, name: str) -> Locator:
    found = page.locator(f".explorable[data-name='{name}'][data-live]")
    found.scroll_into_view_if_needed()
    return found


def state(found: Locator) -> tuple[str, str]:
    """Return the sentence and the picture as they are now."""
    return found.locator(".said").inner_text(), found.locator("svg").inner_html()


def test_the_gallery_shows_each_drawing_and_explorable_once(page: Page, address: str):
    page.goto(address)
    names = page.locator(".explorable").evaluate_all("all => all.map((one) => one.dataset.name)")
    assert sorted(names) == sorted(explorables.NAMES)
    words = page.locator("main img").evaluate_all("all => all.map((one) => one.alt)")
    assert len(words) == len(set(words)) >= 12 and all(words)
    assert page.locator("main img").evaluate_all("all => all.every((one) => one.complete && one.naturalWidth > 0)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_gallery_fits_and_has_no_barrier(
    page: Page, address: str, complaints: list[str], elsewhere: list[str], shot: Callable, size: str, scheme: str
):
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    shot(f"gallery-{size}-{scheme}", full_page=True)
    assert not complaints and not elsewhere


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", explorables.NAMES)
def test_the_mouse_moves_each_control_and_answers_the_question(
    page: Page, address: str, complaints: list[str], name: str, size: str
):
    page.set_viewport_size(SIZES[size])
    page.goto(address)
    by_mouse(explorable(page, name), name)
    assert not complaints


def by_mouse(found: Locator, name: str) -> None:
    """Use each control with the mouse, and answer the question: first wrong, then right."""
    moved = set()
    for at, control in enumerate(evaluate(name, "model.controls")):
        before, used = state(found), found.locator("[data-id]").nth(at)
        if control.get("options"):
            used.select_option(control["options"][-1][0])
        else:
            box = used.bounding_box()
            used.click(position={"x": box["width"] - 4, "y": box["height"] / 2})
        moved |= {control["id"]} if state(found) != before else set()
    assert moved, "no control changes anything"
    question = evaluate(name, "model.question")
    right, wrong = question["right"], (question["right"] + 1) % len(question["answers"])
    for chosen, word in ((wrong, "No."), (right, "Yes.")):
        found.locator("input[type=radio]").nth(chosen).click()
        expect(found.locator(".answer")).to_have_text(re.compile(f"^{word}"))


@pytest.mark.parametrize("name", explorables.NAMES)
def test_the_keyboard_reaches_and_moves_each_control(page: Page, address: str, complaints: list[str], name: str):
    page.goto(address)
    by_keyboard(page, explorable(page, name), name)
    assert not complaints


def by_keyboard(page: Page, found: Locator, name: str) -> None:
    """Go through the controls with the Tab key, and use each with the arrows."""
    found.locator("input[type=radio]").first.focus()
    page.keyboard.press("Space")
    expect(found.locator(".answer")).to_have_text(re.compile("^(Yes|No)"))
    for control in evaluate(name, "model.controls"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.id") == control["id"]
        at = page.evaluate("document.activeElement.value")
        page.keyboard.press("ArrowDown" if control.get("options") else "ArrowRight")
        if page.evaluate("document.activeElement.value") == at:  # it was at its end
            page.keyboard.press("ArrowUp" if control.get("options") else "ArrowLeft")
        assert page.evaluate("document.activeElement.value") != at
        if not control.get("options"):
            assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')")
    assert found.locator(".said").get_attribute("role") == "status"
    assert found.locator("svg").get_attribute("aria-label") == found.locator(".said").inner_text()


def test_without_scripts_and_on_paper_each_is_a_picture_with_a_sentence(browser: Browser, address: str, page: Page):
    with browser.new_context(java_script_enabled=False) as context:
        plain = context.new_page()
        plain.goto(address)
        assert_still(plain)
    page.emulate_media(media="print")
    page.goto(address)
    assert_still(page)


def assert_still(page: Page) -> None:
    for name in explorables.NAMES:
        found = page.locator(f".explorable[data-name='{name}']")
        expect(found.locator("svg")).to_be_visible()
        expect(found.locator(".said")).not_to_be_empty()
        expect(found.locator(".controls")).to_be_hidden()


@pytest.fixture(scope="module")
def notebook(learner: Path) -> Iterator[str]:
    """Write a notebook that shows all explorables into a learner's copy, and return the address of its JupyterLab."""
    cells = [new_code_cell(f'from lessons import explore\n\nexplore("{name}")') for name in explorables.NAMES]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), learner / "notebooks" / "all_explorables.ipynb")
    with lab(learner) as url:
        yield url


def test_in_jupyterlab_each_answers_to_the_mouse_and_the_keyboard(
    page: Page, notebook: str, elsewhere: list[str], shot: Callable
):
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    shown = opened(page, notebook, "all_explorables")
    run_all(page, shown)
    for name in explorables.NAMES:
        cell(shown, f'explore("{name}")')
        found = explorable(page, name)
        by_mouse(found, name)
        by_keyboard(page, found, name)
        shot(f"lab-explorable-{name}")
    assert not errors and not elsewhere
