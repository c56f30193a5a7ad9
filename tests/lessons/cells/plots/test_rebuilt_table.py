"""Two arms of the rebuilt table are compared: what changes, by how much, and whether chance explains it."""

import numpy as np
import pytest

from benchmarks.claims.lesson_07 import c32_techniques as c32
from lessons.cells.plots import rebuilt_table
from lessons.cells.plots.rebuilt_table import ARMS, PUBLISHED, parts_of
from lessons.saved_runs import runs


@pytest.fixture
def shown(monkeypatch) -> list[str]:
    found = []
    monkeypatch.setattr(rebuilt_table, "display", lambda made: found.append(made.data))
    return found


@pytest.mark.parametrize("arm", ARMS)
def test_the_settings_of_an_arm_are_those_of_its_recipe(arm: str):
    told, recipe = parts_of(arm), c32.recipe(arm, 0, c32.CLAIM.settings)
    norms = [module for module in recipe.net().modules() if type(module).__name__ == "BatchNorm2d"]
    assert told["batch norm"] == ("yes" if norms else "no")
    optimizer = recipe.optimizer(recipe.net())
    assert told["optimizer"].partition(",")[0].upper() == type(optimizer).__name__.upper()
    assert float(told["weight decay"]) == max(group["weight_decay"] for group in optimizer.param_groups)
    if arm in c32.CHOSEN.values():
        assert float(told["rate"].partition(",")[0]) == optimizer.param_groups[0]["lr"]
    assert ("the same" in told["images"]) == (recipe.order is not None)
    assert recipe.size == (1 if "the same" in told["images"] else int(told["workers"]))


def test_one_change_is_named_with_the_difference_it_makes(shown: list[str]):
    rebuilt_table.what_changes(runs("C32"), "8-base", "8-bn")
    assert shown[0].count("<li>") == 1 and "<li>batch norm: no → yes</li>" in shown[0]
    assert "The change is seen. This difference belongs to one change." in shown[0]


def test_several_changes_are_counted_with_the_updates(shown: list[str]):
    rebuilt_table.what_changes(runs("C32"), "1-bn", "8-lamb-0.03")
    assert "<li>workers: 1 → 8</li>" in shown[0] and "<li>updates: 1,176 → 156</li>" in shown[0]
    assert "The change is not seen. 6 things change." in shown[0]


def test_the_same_arm_twice_is_told(shown: list[str]):
    rebuilt_table.what_changes(runs("C32"), "8-bn", "8-bn")
    assert "Nothing changes: these are the same runs." in shown[0]


def test_an_unknown_arm_is_refused_in_one_line(shown: list[str]):
    with pytest.raises(ValueError, match="this table has no arm '8-no'; choose one of: 1-base, "):
        rebuilt_table.what_changes(runs("C32"), "8-base", "8-no")
    assert not shown


@pytest.mark.parametrize(
    ("question", "pair", "told"),
    [
        (1, ("1-base", "1-bn"), "1. Right: this pair tells."),
        (2, ("8-same-bn", "8-bn"), "2. Right: this pair tells."),
        (3, ("8-bn", "8-scaled"), "3. Right: this pair tells."),
        (4, ("8-scaled", "8-warmup"), "4. Right: this pair tells."),
        (5, (None,), "5. Right: no two arms differ in this alone."),
        (1, ("8-bn", "8-base"), "1. Right, but the other way round."),
        (2, (...,), "2. Not answered yet."),
        (2, (None,), "2. There is such a pair. Look again."),
        (2, ("8-base", "8-bn"), "2. One thing changes, but it is not what the question asks for."),
        (4, ("8-bn", "8-warmup"), "4. One thing changes, but it is not what the question asks for."),
        (2, ("1-base", "8-base"), "2. This pair does not tell. Only one thing may change."),
        (5, ("8-warmup", "8-lamb"), "5. Only a pair that differs in the optimizer alone would tell."),
    ],
)
def test_a_pair_answers_the_question_whose_one_thing_changes(
    question: int, pair: tuple, told: str, shown: list[str], capsys
):
    rebuilt_table.answer(runs("C32"), question, *pair)
    assert told in capsys.readouterr().out and len(shown) == (1 if len(pair) == 2 else 0)


def test_an_unknown_question_is_refused_in_one_line(shown: list[str]):
    with pytest.raises(ValueError, match="there is no question 6; the questions are 1 to 5"):
        rebuilt_table.answer(runs("C32"), 6, "1-base", "1-bn")


def test_the_tables_have_a_row_for_each_arm(shown: list[str]):
    rebuilt_table.arms(runs("C32"))
    rebuilt_table.arms(runs("C32"), tuned=True)
    tuned = shown.pop().count("<tr>") - 1
    assert shown[0].count("<tr>") == 1 + len(ARMS) - tuned and tuned == 3 and ">8-same-bn</code>" in shown[0]


def test_the_four_arms_of_the_optimizers_are_drawn_with_each_of_their_runs(monkeypatch):
    found = []
    monkeypatch.setattr(rebuilt_table, "show", lambda figure, *texts: found.append((figure, *texts)))
    rebuilt_table.lamb_beside_sgd(runs("C32"))
    figure, told, _ = found[0]
    for line, arm in zip(figure.axes[0].lines[::2], (*c32.CHOSEN.values(), "8-lamb"), strict=True):
        assert sorted(line.get_xdata()) == sorted(100 * np.array(c32.accuracies(runs("C32"), arm)))
        assert f"({arm})" in told


def test_the_figure_of_the_steps_has_the_published_number_and_ours(monkeypatch):
    found = []
    monkeypatch.setattr(rebuilt_table, "show", lambda figure, *texts: found.append((figure, *texts)))
    rebuilt_table.show_steps(runs("C32"))
    figure, told, _ = found[0]
    drawn = [text.get_text() for text in figure.axes[0].texts]
    naive = np.mean(c32.accuracies(runs("C32"), "8-same-base"))
    for row, number, arm in PUBLISHED[2:]:
        ours = 100 * (np.mean(c32.accuracies(runs("C32"), arm)) - naive)
        assert f"{row}: published {number - 44:+}" in told and f"{arm}: ours {ours:+.1f}" in told
        assert f"{number - 44:+}" in drawn and f"{ours:+.1f}" in drawn
