"""An instructor looks at submissions, scores and reports of a graded class in formgrader, in a real browser."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import lab
from tests.conftest import REPOSITORY
from tests.grader.classroom.conftest import Graded, graded  # noqa: F401  the fixture
from tests.grader.classroom.test_class import points
from tests.support import synthetic_class

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(graded: Graded) -> Iterator[str]:  # noqa: F811
    with lab(REPOSITORY, "--course", graded.course.root) as url:
        yield url


def opened(page: Page, address: str, path: str) -> None:
    page.goto(address)  # The server stores the token as a cookie.
    page.goto(re.sub(r"formgrader\?.*", path, address))


def test_formgrader_lists_the_submissions_with_their_scores(page: Page, address: str, graded: Graded, shot: Callable):  # noqa: F811
    opened(page, address, "formgrader")
    for assignment in (*synthetic_class.NOTEBOOKS, synthetic_class.PROGRAM):
        expect(page.get_by_role("gridcell", name=assignment).first).to_be_visible()
    shot("formgrader-assignments")
    opened(page, address, f"formgrader/manage_submissions/{synthetic_class.NOTEBOOKS[0]}")
    right = points(graded.course, synthetic_class.name(0), synthetic_class.NOTEBOOKS[0])
    row = page.get_by_role("row").filter(has_text=synthetic_class.name(0))
    expect(row).to_contain_text(f"{right:g} / {right:g}")
    shot("formgrader-submissions")


def test_formgrader_shows_the_harness_report(page: Page, address: str, shot: Callable):
    opened(page, address, f"formgrader/gradebook/{synthetic_class.PROGRAM}/{synthetic_class.PROGRAM}")
    best = page.get_by_role("row").filter(has_text="100 / 100").first
    expect(best).to_be_visible()
    shot("formgrader-gradebook")
    best.get_by_role("link", name=re.compile("Submission #")).click()
    page.get_by_text("The whole report").click()
    report = page.frame_locator("iframe").first
    expect(report.get_by_text(re.compile(r"\d+ of 100")).first).to_be_visible()
    page.locator("iframe").first.scroll_into_view_if_needed()
    shot("formgrader-report")
    report.locator("figure").first.scroll_into_view_if_needed()
    shot("formgrader-report-plot")
