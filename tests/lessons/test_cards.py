"""The index has a card for each lesson, with its goal, its minutes and a picture."""

import re
from pathlib import Path

import pytest

from grader.notebooks import build
from lessons.execute import Failed
from lessons.minutes import NOT_ESTIMATED, minutes
from lessons.site.cards import card
from tests.conftest import REPOSITORY

SOURCES = build.lessons(build.SOLUTIONS)
LESSONS = [source for source in SOURCES if not source.stem.startswith(("98", "99"))]


@pytest.mark.parametrize("source", LESSONS, ids=lambda source: source.stem)
def test_each_lesson_says_on_its_card_what_one_will_be_able_to_do(source: Path):
    made = card(source, None, None)
    assert made.goal.startswith(("You will be able to ", "You will have ")) and made.goal.endswith(".")
    assert "*" not in made.goal and "`" not in made.goal and "Time" not in made.goal
    assert made.title[:2] == source.stem[:2]


def written(folder: Path, *cells: str) -> Path:
    path = folder / "01_words.py"
    path.write_text("\n\n".join(["# %% [markdown]\n# # A lesson", *cells]))
    return path


def test_minutes_count_words_code_exercises_questions_and_explorables(tmp_path: Path):
    words = "# %% [markdown]\n# " + "word " * 900  # 5 minutes
    code = "# %%\n" + "x = 1\n# a comment\n\n" * 50  # 5 minutes
    exercise = '# %% exercise="ring_step"\ndef ring_step():\n    return 1'  # 5 minutes
    explorable = '# %%\nexplore("ring")'  # 4 minutes, and a line
    question = "# %% [markdown]\n# <details><summary>Why?</summary>So.</details>"  # 1 minute
    assert minutes(written(tmp_path, words)) == 10, "a heading of two words is more than nothing, so 5 become 10"
    assert minutes(written(tmp_path, words, code)) == 15
    assert minutes(written(tmp_path, words, code, exercise)) == 20
    assert minutes(written(tmp_path, words, code, exercise, explorable)) == 20
    assert minutes(written(tmp_path, words, code, exercise, explorable, question)) == 25


def test_the_card_of_a_failed_lesson_says_why(tmp_path: Path):
    source = written(tmp_path)
    failure = Failed(tmp_path / "01_words.failed.ipynb", "cell 3: no such thing")
    failure.path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    made = card(source, None, failure)
    assert (made.page, made.error, made.picture) == ("01_words.failed.html", "cell 3: no such thing", "")
    assert made.title == "A lesson" and made.goal == ""


def test_the_readme_names_the_minutes_of_each_lesson():
    rows = re.findall(r"^\| (\d\d) \|.*\| ([^|]+) \|$", (REPOSITORY / "README.md").read_text(), flags=re.MULTILINE)
    lessons = {path.name[:2]: path for path in LESSONS if not card(path, None, None).is_lab}
    assert [number for number, _ in rows] == list(lessons)
    assert {number: told for number, told in rows if number not in NOT_ESTIMATED} == {
        number: str(minutes(path)) for number, path in lessons.items() if number not in NOT_ESTIMATED
    }
