"""Each lesson has a summary that fits on a sheet: a drawing, a few sentences, and lines of code that compile."""

import ast

import pytest

from grader.notebooks import build
from lessons.site import pages, summaries
from lessons.site.cards import card

WITHOUT = ("00", "08", "98", "99")  # the first lesson, the assignment, the glossary and the references
LESSONS = [
    path
    for path in build.lessons(build.SOLUTIONS)
    if path.name[:2] not in WITHOUT and not card(path, None, None).is_lab
]
MOST_SENTENCES, MOST_LINES = 6, 8


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_summary_is_short_and_its_lines_are_code(lesson):
    summary = summaries.read(lesson)
    assert 3 <= summary.sentences.count("\n- ") + 1 <= MOST_SENTENCES
    lines = summary.code.splitlines()[1:-1]
    assert 3 <= len(lines) <= MOST_LINES
    ast.parse("\n".join(lines))
    assert card(lesson, None, None).picture


def test_the_page_has_a_sheet_for_each_lesson_in_order():
    sources = build.lessons(build.SOLUTIONS)
    cards = [card(source, None, None) for source in sources]
    made = summaries.page(pages.PAGES, pages._style(), sources, cards)
    assert made.count('class="sheet"') == len(LESSONS)
    assert [made.index(card(path, None, None).title) for path in LESSONS] == sorted(
        made.index(card(path, None, None).title) for path in LESSONS
    )
    assert "<script" not in made and "```" not in made
