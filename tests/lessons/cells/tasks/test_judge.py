"""A learner's judgement of a conclusion is answered rule by rule, and the rules are those of the lesson."""

import pytest

from grader.notebooks import build
from lessons.cells.tasks import judge
from lessons.cells.tasks.judge import BROKEN, RULES


def test_the_rules_and_the_conclusions_have_the_numbers_of_the_lesson():
    text = (build.SOLUTIONS / "07_famous_results.py").read_text(encoding="utf-8")
    for number, rule in RULES.items():
        assert f"# {number}. **{rule}" in text
    for number in BROKEN:
        assert f"# - Conclusion {number}: " in text


@pytest.mark.parametrize("conclusion", BROKEN)
def test_all_broken_rules_are_right_in_any_order(said: list[str], conclusion: int):
    judge.judge(conclusion, list(reversed(BROKEN[conclusion])))
    assert "You have found all that are broken." in said[0] and "kept" not in said[0]


def test_a_rule_that_is_kept_is_said_and_a_missing_one_is_counted_and_not_named(said: list[str]):
    judge.judge(1, [1, 3])
    assert "One change from row to row: kept." in said[0] and "Several seeds: broken." in said[0]
    assert "2 more rules are broken." in said[0] and RULES[5] not in said[0]
    judge.judge(2, [3, 4])
    assert "1 more rule is broken." in said[1]
    judge.judge(2, 3)
    assert "2 more rules are broken." in said[2]


def test_who_names_all_rules_is_told_which_are_kept(said: list[str]):
    judge.judge(1, list(RULES))
    assert "The number of updates: kept." in said[0]
    assert "You have found all that are broken. But you have named others, too." in said[0]


def test_without_rules_it_says_what_to_write(said: list[str]):
    judge.judge(2)
    assert "as in judge(2, [3, 4])" in said[0] and "broken" not in said[0]


@pytest.mark.parametrize("numbers", [(4, [1]), (1, [6]), (1, [0]), ("one", [1])])
def test_what_does_not_exist_is_refused_in_one_line(said: list[str], numbers):
    with pytest.raises(ValueError, match="there is no"):
        judge.judge(*numbers)
    assert not said
