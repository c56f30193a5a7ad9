"""Takes the pictures of README and of the instructor's week in Chromium.

They show a page of a lesson, the report of a graded program, and the summary of a made-up class.

python -m docs.pictures.screens

It needs the pages of `python -m lessons --only 03`, the report of `make course`, the class of `make class STUDENTS=12`
after `make export COURSE=runs/class`, and Chromium.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
RUNS = HERE.parents[1] / "runs"
SIZE = {"width": 840, "height": 900}  # pixels
# Each picture's name, its page, and the text of the heading at which it begins.
SCREENS = {
    "lesson": (RUNS / "quick" / "03_data_parallelism_by_hand.html", "The loop in four steps"),
    "grade": (RUNS / "course" / "report.html", ""),
    "class": (RUNS / "class" / "export" / "summary.html", ""),
}


def main() -> int:
    """Write the pictures. Returns 2 if a page or Chromium is missing."""
    missing = [page for page, _ in SCREENS.values() if not page.exists()]
    chromium = shutil.which("chromium")
    if missing or not chromium:
        lacks = missing[0] if missing else "chromium"
        first = "make course, make site, make class, make export COURSE=runs/class and make with-chromium"
        print(f"screens: there is no {lacks}; first run {first}", file=sys.stderr)
        return 2
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )  # fmt: skip
        for name, (path, heading) in SCREENS.items():
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            page.goto(path.as_uri())
            if heading:
                page.get_by_role("heading", name=heading).evaluate("heading => heading.scrollIntoView()")
            page.screenshot(path=HERE / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
