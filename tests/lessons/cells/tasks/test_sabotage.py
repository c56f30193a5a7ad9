"""Each bug is put into the program in one place, and the four workers show it, except where nothing shows."""

from pathlib import Path

import pytest

from lessons.cells.launches.running import SOURCE
from lessons.cells.tasks import sabotage
from lessons.cells.tasks.sabotage import BUGS, PATIENTS, diagnose

PROGRAM = (SOURCE / "cifar_base.py").read_text()
NOT_MET = {
    "no broadcast": {3, 4}, "no shards": {2, 3}, "no averaging": {3}, "sum for mean": set(),
    "one order for all epochs": {8}, "one seed for all": {5}, "mean of the counts": {6}, "all write": {7},
}  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Collect what is displayed, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    found = []
    for module in (sabotage, sabotage.convert):
        monkeypatch.setattr(module, "display", lambda made: found.append(made.data))
    return found


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_changes_one_place_of_a_program_that_still_compiles(bug: str):
    assert PROGRAM.count(BUGS[bug].text) == 1
    compile(PROGRAM.replace(BUGS[bug].text, BUGS[bug].instead), bug, "exec")


def test_patients_have_different_bugs_and_each_row_after_the_first_can_fail():
    assert set().union(*NOT_MET.values()) == set(range(2, 9))
    assert len(set(PATIENTS)) == len(PATIENTS) and set(PATIENTS) <= set(BUGS)
    assert set(NOT_MET) == set(BUGS) - {"rank 0 asks alone"}


def test_an_answer_is_judged(shown: list[str]):
    assert not diagnose(1, "no shards") and "the rows look different" in shown[-1]
    assert diagnose(1, PATIENTS[0]) and shown[-1].startswith("<p>Yes.")


@pytest.mark.parametrize("call", [lambda: sabotage.sabotage("no such"), lambda: sabotage.patient(9)])
def test_an_unknown_bug_is_refused_in_one_line(shown: list[str], call):
    with pytest.raises(ValueError, match="there is no") as refused:
        call()
    assert "\n" not in str(refused.value) and not shown


@pytest.mark.slow
@pytest.mark.parametrize("bug", NOT_MET)
def test_the_rows_of_a_bug_are_not_met_and_no_others(shown: list[str], cifar10: Path, bug: str):
    rows = sabotage.sabotage(bug, my_guess=3)
    assert {number for number, row in enumerate(rows, 1) if not row.met} == NOT_MET[bug]
    assert "You expected row 3." in shown[-1]


@pytest.mark.slow
def test_a_program_that_hangs_is_ended_and_the_missing_ranks_are_named(shown: list[str], cifar10: Path):
    """Horovod's stall check works over Gloo only with our change of Horovod."""
    assert sabotage.sabotage("rank 0 asks alone") == []
    assert "sabotaged.py failed on 4 workers" in shown[0] and "The program did not end well" in shown[1]
    assert (
        "Missing ranks:" in shown[0]
        and "1: [allreduce." in shown[0]
        and "Horovod says which ranks are missing" in shown[0]
    )
