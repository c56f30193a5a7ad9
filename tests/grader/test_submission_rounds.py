"""Rounds of all submissions: each has a key of its own, goes on where it stopped, and its table tells what is wrong."""

import json
from pathlib import Path

import pytest

from tests.support import submission_rounds
from tests.support.submission_suite import submissions

REFUSED = "mistakes/wrong_file_name"  # it is refused before anything is launched, so a round takes no time


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(submission_rounds, "FOLDER", tmp_path)


def test_each_round_has_a_key_of_its_own_and_is_not_repeated(capsys):
    command = ["--rounds", "2", "--only", REFUSED]
    assert submission_rounds.main(command) == 0
    files = [json.loads(submission_rounds.path_of(number).read_text()) for number in range(2)]
    assert len({file["key"] for file in files}) == 2
    assert capsys.readouterr().out.startswith("round 0 mistakes/wrong_file_name: 0 points")
    assert submission_rounds.main(command) == 0
    assert f"| {REFUSED} | 2 | 0 | 0 | nothing |" in capsys.readouterr().out.splitlines()[2]


def test_a_round_of_another_grader_is_not_continued(capsys):
    submission_rounds.path_of(0).write_text(json.dumps({"grader_sha256": "another", "runs": {}}))
    with pytest.raises(SystemExit):
        submission_rounds.main(["--rounds", "1", "--only", REFUSED])
    assert "was written by another grader: remove it" in capsys.readouterr().err


def test_the_counts_tell_a_right_one_that_failed_and_a_wrong_one_that_passed():
    right = next(one for one in submissions() if one.passes)
    wrong = next(one for one in submissions() if one.passes is False)
    run = {"points": 90, "passed": True, "problems": []}
    rounds = [{right.id: run, wrong.id: run | {"problems": ["passes"]}}, {right.id: run | {"passed": False}}]
    told = submission_rounds.counts([right, wrong], rounds)
    assert told.startswith("1 of 2 runs that must pass did not pass. 1 of 1 runs that must not pass passed. 1 of 3")
    assert f"| {wrong.id} | 1 | 90 | 1 | passes (in 1) |" in submission_rounds.table([right, wrong], rounds)
