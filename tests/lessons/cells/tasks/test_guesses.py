"""A learner's guess is put beside the measured number, and all guesses are shown together at the end."""

import json

import pytest

from lessons.cells.tasks import guesses
from lessons.cells.tasks.guesses import QUESTIONS, SUSPECTS, accuse, all_guesses, compare, verdict
from tests.conftest import REPOSITORY


@pytest.fixture
def said(tmp_path, monkeypatch) -> list[str]:
    """Collect what is displayed, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    shown = []
    monkeypatch.setattr(guesses, "display", lambda made: shown.append(made.data))
    return shown


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_question_has_an_answer_above_0(name: str):
    assert QUESTIONS[name].truth > 0 and QUESTIONS[name].text.endswith("?")


def test_a_guess_is_put_beside_the_truth_and_kept(said: list[str]):
    truth = QUESTIONS["two_workers"].truth
    compare("two_workers", truth / 2)
    assert f"Your guess: {truth / 2:g} images. It is {truth:g} images. You were 2.0 times too low." in said[0]
    compare("two_workers", round(truth))
    assert "That is it." in said[1]
    assert json.loads(guesses.KEPT.read_text()) == {"two_workers": round(truth)}


def test_without_a_guess_the_answer_is_told_and_nothing_is_kept(said: list[str]):
    compare("adam", None)
    assert f"It is {QUESTIONS['adam'].truth:g} %. There is no guess of yours yet." in said[0]
    assert not guesses.KEPT.exists()


@pytest.mark.parametrize("guess", ["150", -1, 0, float("nan"), True, [3]])
def test_what_is_no_number_above_0_is_said(said: list[str], guess):
    with pytest.raises(ValueError, match="must be a number above 0"):
        compare("adam", guess)
    assert not said


def test_at_the_end_all_guesses_are_shown_with_those_that_were_close(said: list[str]):
    all_guesses()
    assert "no guesses of yours" in said[0]
    compare("adam", QUESTIONS["adam"].truth * 1.2)
    compare("four_workers", QUESTIONS["four_workers"].truth * 3)
    all_guesses()
    assert (
        said[-1].count("<tr>") == 3 and "1 of your 2 guesses were at most 1.5 times too large or too small" in said[-1]
    )


def test_the_suspect_of_the_first_lesson_is_kept_and_later_judged(said: list[str]):
    verdict()
    assert not said
    accuse(None)
    assert "nobody yet" in said[-1] and not guesses.KEPT.exists()
    accuse("the batch")
    compare("adam", 50)
    verdict()
    assert "<strong>the batch</strong>. Guilty" in said[-1]
    all_guesses()
    assert said[-1].count("<tr>") == 2, "a suspect is no number, so it is not in the table"


def test_an_experiment_is_kept_beside_ours_and_shown_again_with_the_verdict(said: list[str]):
    accuse("the data")
    assert "Write an experiment into the cell" in said[-1]
    accuse("the data", "count <all> images")
    assert "count &lt;all&gt; images" in said[-1] and SUSPECTS["the data"].experiment in said[-1]
    verdict()
    assert "Your experiment was: count &lt;all&gt; images" in said[-1] and SUSPECTS["the data"].verdict in said[-1]
    accuse("the batch")
    verdict()
    assert "Your experiment" not in said[-1], "an experiment belongs to its suspect"


def test_a_suspect_who_is_not_in_the_table_is_refused(said: list[str]):
    with pytest.raises(ValueError, match=r"my_suspect must be one of 'the measurement', .* not 'the bach'"):
        accuse("the bach")


def test_the_suspects_are_those_of_the_table_in_the_first_lesson():
    text = (REPOSITORY / "solutions" / "00_start_here.py").read_text()
    assert all(f"# | {suspect} | " in text for suspect in SUSPECTS)
