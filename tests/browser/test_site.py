"""The pages of executed lessons fit the screens of a phone and a desktop, and fetch nothing from the network."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from grader.notebooks import build
from lessons import __main__ as command
from lessons import pages

pytestmark = pytest.mark.slow
PHONE = {"width": 390, "height": 844}
LESSONS = ("00", "07", "99")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cifar10: Path) -> Path:
    """Execute three of the lessons, and return the folder with their pages."""
    folder = tmp_path_factory.mktemp("site")
    assert command.main(["--only", *LESSONS, "--output", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "desk"])
def test_every_page_fits_its_screen_and_fetches_nothing(
    page: Page, site: Path, elsewhere: list[str], shot: Callable, size: dict, request: pytest.FixtureRequest
):
    page.set_viewport_size(size)
    for path in sorted(site.glob("*.html")):
        page.goto(path.as_uri())
        expect(page.locator("h1").first).to_be_visible()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"], f"{path.name} is {width} pixels wide"
        shot(f"site-{request.node.callspec.id}-{path.stem}", full_page=True)
    assert not elsewhere


FORMULAS = "05_why_it_converges_worse"


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
    assert page.locator("tr#C12").get_by_text("PyTorch").count()
    page.get_by_role("link", name="00 Start here").click()
    page.locator("a[rel=next]").first.click()
    expect(page.locator("h1").first).to_contain_text("07")
    page.locator("a[rel=prev]").last.click()
    expect(page.locator("h1").first).to_contain_text("00")
