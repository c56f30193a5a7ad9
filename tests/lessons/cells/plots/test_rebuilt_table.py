"""Two arms of the rebuilt table are compared: what changes, by how much, and whether chance explains it."""

import pytest

from benchmarks.claims.lesson_07 import c32_techniques as c32
from lessons.cells.plots import rebuilt_table
from lessons.cells.plots.rebuilt_table import ARMS, PUBLISHED, parts_of
from lessons.findings import runs


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


def test_the_tables_have_a_row_for_each_arm_and_each_published_row(shown: list[str]):
    rebuilt_table.arms(runs("C32"))
    rebuilt_table.published_beside_rebuilt(runs("C32"))
    rebuilt_table.arms(runs("C32"), tuned=True)
    tuned = shown.pop().count("<tr>") - 1
    assert shown[0].count("<tr>") == 1 + len(ARMS) - tuned and tuned == 3 and "<td>1,176</td>" in shown[0]
    assert shown[1].count("<tr>") == 1 + len(PUBLISHED) and "<td>no arm</td>" in shown[1]
    rebuilt_table.lamb_beside_sgd(runs("C32"))
    assert shown[2].count("<tr>") == 4 and ">8-lamb</code>" in shown[2]
    assert {arm for _, _, *two in PUBLISHED for arm in two if arm} <= set(ARMS)
