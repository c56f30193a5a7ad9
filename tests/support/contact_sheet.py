"""Puts all figures of executed lessons on one sheet, so that they can be compared with those of another version.

    python -m tests.support.contact_sheet runs/quick sheet.png

The sheet has a row for each lesson, with its drawings and figures in their order. An explorable is there as the picture
that it leaves in print.
"""

import argparse
import html
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = re.compile(r'src="(data:image/[a-z+]+;base64,[^"]+)"')
WIDTH, HEIGHT = 1200, 90  # pixels: of the sheet, and of each picture
STYLE = f"""
body {{ font: 13px sans-serif; margin: 12px; width: {WIDTH - 24}px; background: white }}
section {{ display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin-bottom: 14px }}
h2 {{ font-size: 13px; width: 100%; margin: 0 }}
img {{ height: {HEIGHT}px; border: 1px solid #ccc }}
"""


def sheet(folder: Path) -> tuple[str, int]:
    """Return the sheet as a page, and the number of its pictures. `folder` has the pages of executed lessons."""
    parts, count = [], 0
    for page in sorted(folder.glob("[0-9][0-9]_*.html")):
        found = [f'<img src="{source}" alt="">' for source in PICTURE.findall(page.read_text())]
        count += len(found)
        parts.append(f"<section><h2>{html.escape(page.stem)}: {len(found)}</h2>{''.join(found)}</section>")
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{''.join(parts)}", count


def main() -> int:
    """Return the exit status. It is 2 if there are no executed lessons, or no Chromium."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with the pages of executed lessons")
    parser.add_argument("output", type=Path, help="the PNG file to write")
    args = parser.parse_args()
    page, count = sheet(args.folder)
    chromium = shutil.which("chromium")
    if not count or not chromium:
        lacks = "there is no chromium: make with-chromium" if count else f"{args.folder} has no lessons: make notebooks"
        print(f"contact_sheet: {lacks}", file=sys.stderr)
        return 2
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sheet.html")
        path.write_text(page)
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        opened = browser.new_page(viewport={"width": WIDTH, "height": 800})
        opened.goto(path.as_uri())
        opened.screenshot(path=args.output, full_page=True)
    print(f"{args.output}: {count} pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
