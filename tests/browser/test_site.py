"""The pages of executed lessons fit the screens of a phone and a desktop, and fetch nothing from the network."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from grader.notebooks import build
from lessons import __main__ as command
from lessons.site import pages

pytestmark = pytest.mark.slow
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1200, "height": 900}
# The words of table cells that stand on more than one line. A word may be parted at a hyphen or a slash.
BROKEN_WORDS = """() => [...document.querySelectorAll("td, th")].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
  for (let node; (node = walker.nextNode()); )
    for (const word of node.data.matchAll(/[^\\s\\/\\u2010-\\u2015-]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width);
      const lines = new Set(boxes.map((box) => Math.round(box.bottom)));
      if (lines.size > 1) broken.push(word[0]);
    }
  return broken;
})"""
LESSONS = ("00", "07", "99")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cifar10: Path) -> Path:
    """Execute three of the lessons, and return the folder with their pages."""
    folder = tmp_path_factory.mktemp("site")
    assert command.main(["--only", *LESSONS, "--output", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_every_page_fits_its_screen_and_fetches_nothing(
    page: Page, site: Path, elsewhere: list[str], shot: Callable, size: dict, request: pytest.FixtureRequest
):
    page.set_viewport_size(size)
    for path in sorted(site.glob("*.html")):
        page.goto(path.as_uri())
        expect(page.locator("h1").first).to_be_visible()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{path.name} is {width} pixels wide"
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        assert not page.evaluate(BROKEN_WORDS), path.name
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = false")
        shot(f"site-{request.node.callspec.id}-{path.stem}", full_page=True)
    assert not elsewhere


def test_each_summary_is_one_printed_sheet(page: Page, site: Path):
    page.goto((site / "summaries.html").as_uri())
    sheets = page.locator(".sheet").count()
    assert sheets > 1
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(format="A4"))) == sheets


FORMULAS = "01_gradient_descent_and_noise"  # a lesson with several wide formulas


def test_a_formula_that_is_wider_than_a_phone_scrolls_by_itself(page: Page, tmp_path: Path, shot: Callable):
    notebook = build.solved(build.SOLUTIONS / f"{FORMULAS}.py")
    (tmp_path / "page.html").write_text(pages.lesson_page(notebook), encoding="utf-8")
    page.set_viewport_size(PHONE)
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator(".formula math").count() > 1
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.locator(".formula").first.scroll_into_view_if_needed()
    shot("site-phone-formula")


def test_one_can_go_from_lesson_to_lesson_and_results_say_their_machine(page: Page, site: Path):
    page.goto((site / "index.html").as_uri())
    page.locator("tr#C12 summary").click()
    expect(page.locator("tr#C12").get_by_text("PyTorch")).to_be_visible()
    page.get_by_role("link", name="00 Start here").click()
    page.locator("a[rel=next]").first.click()
    expect(page.locator("h1").first).to_contain_text("07")
    page.locator("a[rel=prev]").last.click()
    expect(page.locator("h1").first).to_contain_text("00")
