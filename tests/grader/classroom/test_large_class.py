"""A made-up class goes the whole way, and the time of a larger one is foretold from its parts."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from tests.support import large_class
from tests.support.large_class import Clock, learners, predicted, show
from tests.support.submission_suite import REPOSITORY

RESULT = {
    "students": 3, "submissions": 5, "programs": [60.0, 120.0],
    "seconds": {"release": 30.0, "take in": 6.0, "notebooks": 18.0, "feedback": 12.0, "pack the feedback": 3.0,
                "export": 3.0},
}  # fmt: skip


def test_learners_are_drawn_and_differ_in_their_mistakes():
    people = learners(200)
    assert len({one.student for one in people}) == 200
    assert people == learners(200)
    assert len({one.points for one in people}) > 5
    assert len({one.program.id for one in people if one.program}) > 50
    assert 0.8 < sum(one.program is not None for one in people) / 200 < 1


def test_more_machines_share_the_programs_and_one_does_the_rest():
    assert predicted(RESULT, 1) == 72 + 180
    assert predicted(RESULT, 2) == 72 + 120, "the longest program is not divided"
    assert "| run 2 programs | 3.0 |" in show(RESULT)
    assert "3 learners, 5 submissions" in show(RESULT)


def test_the_reference_has_the_tables_of_the_saved_result():
    reference = (REPOSITORY / "docs" / "instructors_reference.md").read_text()
    assert show(json.loads(large_class.RESULT.read_text())) in reference


def test_a_part_is_done_once_and_its_time_is_kept(tmp_path: Path):
    done = []
    for _ in range(2):
        Clock(tmp_path / "seconds.json").part("some", lambda: done.append(1))
    assert done == [1]


def interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_class_goes_from_download_to_table_and_on_after_an_interrupt(tmp_path: Path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(large_class, "release_feedback", interrupted)
        with pytest.raises(KeyboardInterrupt):
            large_class.grade(tmp_path, 3, Console(quiet=True))
    result = large_class.grade(tmp_path, 3, Console(quiet=True))
    assert (result["not_as_expected"], result["failures"]) == ([], {})
    assert result["rows"] == result["students"] == 3
    assert result["submissions"] == result["pages"] == 3 + len(result["programs"])
    again = large_class.grade(tmp_path, 3, Console(quiet=True))
    assert again == result, "nothing is done twice"
