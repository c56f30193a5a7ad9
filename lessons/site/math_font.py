"""Makes the font of the formulas: the signs that the lessons use, out of STIX Two Math.

A browser sets a formula well only with a font that has tables for mathematics, and many machines have none. So each
page with formulas brings one along. STIX Two Math is free under the SIL Open Font License 1.1. After a new sign came
into a formula, make the font again: `python -m lessons.site.math_font STIXTwoMath-Regular.ttf`. The file comes with
the package `ziamath` of PyPI, and with https://github.com/stipub/stixfonts.
"""

import argparse
import base64
import html
import re
import sys
from pathlib import Path
from unicodedata import normalize

from fontTools import subset
from fontTools.ttLib import TTFont
from markupsafe import Markup

from grader.notebooks.build import SOLUTIONS, lessons, solved
from lessons.site.markdown import as_html

FONT = Path(__file__).with_name("math.woff")
FORMULA = re.compile(r"<math.*?</math>", re.DOTALL)
ALWAYS = "√0123456789"  # A browser draws a root without a sign in the page. A new number needs no new font.
SLANTED = (*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C), 0x210E)  # Latin, Greek, and the h, which lies apart
RULE = """
@font-face {{ font-family: "Course Math"; src: url(data:font/woff;base64,{}) format("woff"); }}
math {{ font-family: "Course Math", math; font-size: 1.1em; }}
"""


def style(body: str) -> Markup:
    """Return the style of the formulas on a page, with the font. It is empty for a page without formulas."""
    return Markup(RULE.format(base64.b64encode(FONT.read_bytes()).decode()) if "<math" in body else "")


def signs() -> set[int]:
    """Return the code points of all signs in the lessons' formulas. A browser slants a letter that stands alone."""
    cells = [cell.source for path in lessons(SOLUTIONS) for cell in solved(path).cells if cell.cell_type == "markdown"]
    formulas = FORMULA.findall("".join(map(as_html, cells)))
    found = "".join(html.unescape(re.sub(r"<[^>]+>", "", formula)) for formula in formulas)
    slanted = {code for code in SLANTED if normalize("NFKC", chr(code)) in normalize("NFKC", found)}
    return {ord(sign) for sign in found + ALWAYS if not sign.isspace()} | slanted


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="lessons.site.math_font", description=__doc__.splitlines()[0])
    parser.add_argument("font", type=Path, help="STIXTwoMath-Regular.ttf")
    font = TTFont(parser.parse_args(args).font)
    options = subset.Options(flavor="woff", layout_features=["ssty"], hinting=False, name_IDs=[0, 1, 2, 13, 14])
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=signs())
    chosen.subset(font)
    subset.save_font(font, FONT, options)
    print(f"font: {FONT}, {FONT.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
