"""The answers to lesson 06's four programs follow from the table of the lesson."""

import re

import pytest

from grader.notebooks import build
from lessons.cells.tasks.missing import ANSWERS, FOUND, missing

LESSON = (build.SOLUTIONS / "06_techniques.py").read_text(encoding="utf-8")
ROW = re.compile(r"^# \| program ([A-D]) \| (\S+), (\S+), (\S+) \| (\S+), (\S+), (\S+) \| (\d+) %, (\d+) %", re.M)
BASE, WORKERS, GUESSING = 0.1, 8, 2.31


def test_what_is_wrong_with_each_program_follows_from_its_row_in_the_lesson():
    rows = ROW.findall(LESSON)
    assert [row[0] for row in rows] == list(FOUND)
    for program, *numbers in rows:
        first, _, last, _, early, _, printed, saved = map(float, numbers)
        if printed != saved:
            answer = "statistics"
        elif last > WORKERS * BASE:
            answer = "scaled twice"
        elif last < WORKERS * BASE:
            answer = "scaling"
        else:
            assert first > BASE and early > GUESSING
            answer = "warmup"
        assert answer == FOUND[program][0]


def test_the_lesson_names_all_answers():
    assert all(f'`"{answer}"`' in LESSON for answer in ANSWERS)


def test_only_the_right_answer_is_explained(said: list[str]):
    missing("B", "scaling")
    missing("B", "warmup")
    missing("B")
    assert "yes. The rate is 0.1" in said[0]
    assert "no. Look at its row again." in said[1] and "0.1" not in said[1]
    assert "as in missing(&quot;B&quot;, &quot;warmup&quot;)" in said[2]


@pytest.mark.parametrize("arguments", [("E", "warmup"), ("A", "luck")])
def test_what_does_not_exist_is_refused_in_one_line(said: list[str], arguments):
    with pytest.raises(ValueError, match=r"there is no .* choose one of"):
        missing(*arguments)
    assert not said
