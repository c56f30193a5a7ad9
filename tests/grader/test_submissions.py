"""Every submission of tests/submissions runs on four real workers, is graded as expected, and leaves nothing behind."""

from pathlib import Path

import pytest

from tests.support import submission_suite
from tests.support.submission_suite import SUBMISSIONS, Outcome, Submission

ALL = submission_suite.submissions()
ROWS = {*range(1, 46)}
# Threat 19 needs GPUs and is tested with made-up evidence. The other threats are tested with the intake.
ELSEWHERE = {19, 36, 42, 43, 44}
FOLDERS = {f"{path.parent.parent.name}/{path.parent.name}" for path in SUBMISSIONS.glob("*/*/train.py")}


@pytest.mark.parametrize(
    "submission",
    [pytest.param(one, id=one.id, marks=() if one.quick else pytest.mark.slow) for one in ALL],
)
def test_it_is_graded_as_expected_and_leaves_nothing(submission: Submission, tmp_path: Path):
    outcome = submission_suite.run(submission, tmp_path / "run")
    submission_suite.keep(submission, outcome, submission_suite.grader_hash())
    assert submission_suite.problems(submission, outcome) == []


def test_every_threat_has_a_submission():
    assert {row for submission in ALL for row in submission.rows} == ROWS - ELSEWHERE


@pytest.mark.parametrize("row", [row for row in range(1, 24) if row not in ELSEWHERE])
def test_every_honest_mistake_has_a_variant(row: int):
    assert len([submission for submission in ALL if row in submission.rows]) >= 2


def test_ten_right_ones_and_more():
    right = [submission for submission in ALL if submission.kind == "right"]
    assert len(right) >= 10
    assert all(submission.passes and not submission.lost and not submission.may_lose for submission in right)


def test_nothing_hostile_may_both_pass_and_keep_all_points():
    assert all(not submission.passes or submission.lost for submission in ALL if submission.kind == "hostile")


def test_the_quick_ones_cost_every_rubric_line_that_a_machine_without_gpus_can_cost():
    quick = [submission for submission in ALL if submission.quick]
    assert 0.1 < len(quick) / len(ALL) < 0.2
    costs = {line for submission in quick for line in submission.lost if line != "*"}
    assert costs | {"device", "target", "begins"} == set(submission_suite.LINES)


def test_every_folder_is_named_in_the_table_and_every_name_has_a_folder():
    assert {submission.id for submission in ALL if submission.edits is None} == FOLDERS


@pytest.mark.parametrize("submission", ALL, ids=lambda one: one.id)
def test_edits_fit_and_programs_compile(submission: Submission, tmp_path: Path):
    submission.write(tmp_path / "in")
    text = (tmp_path / "in" / submission.entry).read_text()
    if submission.name == "syntax_error":
        with pytest.raises(SyntaxError):
            compile(text, submission.id, "exec")
    else:
        compile(text, submission.id, "exec")


def test_a_wrong_outcome_is_told():
    rows = [
        {"id": line, "points": 5, "max": 5, "status": "met", "seen": "", "message": ""}
        for line in submission_suite.LINES
    ]
    rows[3] |= {"points": 0, "status": "unmet", "seen": "no mean"}
    outcome = Outcome(True, 80, rows, "", ["FOUND it"], ["/tmp/thing"], 1.0, "", ["done"])
    wanted = Submission("mistakes", "some", [1], passes=False, lost=["ends"], says=["average"])
    assert submission_suite.problems(wanted, outcome) == [
        "left behind: /tmp/thing",
        "it found what it must not: FOUND it",
        "it did not get as far as to say 'done'",
        "keeps ends",
        f"loses {submission_suite.LINES[3]}",
        "passes",
        "does not say 'average'",
    ]


def test_what_is_left_behind_is_noticed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(submission_suite, "PATIENCE_SECONDS", 0.1)
    before = submission_suite.world()
    thing = Path("/tmp", f"{submission_suite.MARK}-{tmp_path.name}-{id(before)}")
    thing.touch()
    try:
        assert submission_suite.left(before) == [str(thing)]
    finally:
        thing.unlink()
