"""The pages of executed lessons, as a file on a phone and on a desk: nothing wider than the screen, nothing fetched."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from lessons import __main__ as command

pytestmark = pytest.mark.slow
PHONE = {"width": 390, "height": 844}
LESSONS = ("00", "07", "99")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cifar10: Path) -> Path:
    """Three of the lessons executed, and their pages."""
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
        shot(f"site-{request.node.callspec.id}-{path.stem}")
    assert not elsewhere


def test_one_can_go_from_lesson_to_lesson_and_results_say_their_machine(page: Page, site: Path):
    page.goto((site / "index.html").as_uri())
    assert page.locator("tr#C12").get_by_text("PyTorch").count()
    page.get_by_role("link", name="00 Start here").click()
    page.locator("a[rel=next]").first.click()
    expect(page.locator("h1").first).to_contain_text("07")
    page.locator("a[rel=prev]").last.click()
    expect(page.locator("h1").first).to_contain_text("00")
