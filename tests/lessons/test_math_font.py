"""Each page with formulas has a font that knows all signs in them."""

import re

import nbformat
from fontTools.ttLib import TTFont
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grader.exercises.public_check import Points
from lessons.site import math_font, pages


def page(*cells: nbformat.NotebookNode) -> str:
    return pages.lesson_page(new_notebook(cells=list(cells)))


def test_the_font_knows_all_signs_of_the_lessons():
    font = TTFont(math_font.FONT)
    missing = math_font.signs() - set(font.getBestCmap())
    assert not missing, f"make the font again, it lacks {', '.join(map(chr, missing))}"
    assert "MATH" in font, "the tables that place an exponent"


def test_a_letter_that_stands_alone_is_slanted():
    assert {ord("η"), ord("𝜂"), ord("ℎ")} <= math_font.signs()


def test_formulas_that_are_folded_away_count():
    assert ord("𝜎") in math_font.signs()


def test_only_a_page_with_formulas_has_the_font():
    assert "font/woff" in page(new_markdown_cell(r"$\sqrt{2}$"))
    assert "font/woff" not in page(new_markdown_cell("words"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page())
    assert "font-src data:" in policy[1]


def test_the_bars_of_a_norm_keep_their_size():
    html = page(new_markdown_cell(r"$\lVert g \rVert^2$"))
    assert html.count('<mo stretchy="false">\N{DOUBLE VERTICAL LINE}</mo>') == 2


def test_a_page_shows_only_the_parameters_that_were_used():
    own = new_code_cell("images = 4096", metadata={"tags": ["parameters"]})
    used = new_code_cell("images = 2048", metadata={"tags": ["injected-parameters"]})
    both = page(own, used)
    assert "2048" in both and "4096" not in both
    assert "4096" in page(own)


def test_a_page_does_not_repeat_the_points_of_a_check():
    data = {"text/plain": "4.0", "text/html": Points(4.0)._repr_html_()}
    shown = page(new_code_cell("check()", outputs=[new_output("execute_result", data)], id="a"))
    assert "4.0" not in shown and shown == page(new_code_cell("check()", id="a"))
