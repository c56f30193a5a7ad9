"""Real Dask clusters grade classes with a short grading function, and one class with the real grader."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import psutil
import pytest
from filelock import FileLock
from rich.console import Console

from grader.batch import dask_cluster, grade_batch, journal
from grader.batch.names import safe_name
from tests.conftest import REPOSITORY, run_python
from tests.support.batch_class import Class


def test_two_slots_grade_at_the_same_time_one_submission_each(group: Class, capfd):
    for number in (3, 1, 2, 4):
        group.add(f"s{number}", seconds=2, right=number != 2)
    status, output = group.grade()
    assert (status, capfd.readouterr().err) == (0, "")
    assert "0 of 4 submissions have a result" in output
    assert "3 of 4 passed" in output
    assert "4 of 4: s" in output
    assert re.search(r"100 points, passed; about \d+ s left", output)
    runs = [group.report(f"s{number}")["record"] for number in (1, 2, 3, 4)]
    moments = sorted([(run["began"], 1) for run in runs] + [(run["ended"], -1) for run in runs])
    at_work = [sum(change for _, change in moments[: end + 1]) for end in range(len(moments))]
    assert max(at_work) == 2
    for pid in {run["pid"] for run in runs}:
        of_slot = sorted((run["began"], run["ended"]) for run in runs if run["pid"] == pid)
        assert all(earlier[1] <= later[0] for earlier, later in pairwise(of_slot))
    assert not (group.output / "work").exists()


def test_results_are_written_as_sorted_csv_and_json(group: Class):
    for name in ("zoe", "anna", "bo"):
        group.add(name, right=name != "bo")
    assert group.grade("--key", "a key", "--seed", "7")[0] == 0
    header, *rows = list(csv.reader(io.StringIO((group.output / "results.csv").read_text())))
    assert header == ["name", "points", "passed", "begins", "target", "seconds", "message", "folder"]
    assert [row[:5] for row in rows] == [
        ["anna", "100", "yes", "40", "60"], ["bo", "40", "no", "40", "0"], ["zoe", "100", "yes", "40", "60"],
    ]  # fmt: skip
    assert rows[1][6:] == ["Scale the rate.", safe_name("bo")]
    written = json.loads((group.output / "results.json").read_text())
    assert (written["schema"], written["seed"], written["profile"]) == (1, 7, "full")
    assert [result["name"] for result in written["results"]] == ["anna", "bo", "zoe"]
    assert "a key" not in json.dumps(written)


def test_a_second_run_grades_only_new_and_changed_submissions(group: Class):
    for name in ("anna", "bo", "cy"):
        group.add(name)
    group.grade()
    first = (group.output / "results.csv").read_text()
    assert group.grade()[0] == 0
    assert sorted(group.begun()) == ["anna", "bo", "cy"]
    assert (group.output / "results.csv").read_text() == first
    group.add("bo", right=False)
    group.add("dan")
    (group.folder / "cy").rename(group.folder / "cyril")
    status, output = group.grade()
    assert status == 0
    assert "1 of 4 submissions have a result" in output
    assert sorted(group.begun()) == ["anna", "bo", "bo", "cy", "cyril", "dan"]
    assert [(row["name"], row["points"]) for row in group.rows()] == [
        ("anna", "100"), ("bo", "40"), ("cyril", "100"), ("dan", "100"),
    ]  # fmt: skip


def test_an_earlier_version_submitted_again_gets_its_own_report(group: Class):
    for right in (False, True, False):
        group.add("anna", right=right)
        assert group.grade()[0] == 0
        assert (group.report("anna")["points"], group.rows()[0]["points"]) == ((100, "100") if right else (40, "40"))
    assert group.begun() == ["anna"] * 3


def test_rerun_grades_again_what_has_a_result(group: Class):
    for name in ("anna", "bo"):
        group.add(name)
    group.grade()
    options = grade_batch.BatchOptions(submissions=group.folder, output=group.output, profile="full", rerun=True)
    with group.graded_by():
        assert grade_batch.grade_batch(options, Console(quiet=True)).failures == {}
    assert sorted(group.begun()) == ["anna", "anna", "bo", "bo"]


def test_a_batch_with_other_settings_is_refused(group: Class, capfd):
    group.add("anna")
    group.output.mkdir()
    path = group.output / "journal.jsonl"
    with journal.Journal(path, journal.Settings("full", "a key", 1, "sandbox", dask_cluster.GRADER)):
        before = path.read_bytes()
    assert group.grade("--seed", "2")[0] == 2
    assert capfd.readouterr().err == (
        "grader: this batch began with another seed: give the same options as then, or another --output\n"
    )
    assert path.read_bytes() == before
    assert group.begun() == []


def test_a_second_batch_in_the_same_folder_is_refused(group: Class, capfd, monkeypatch):
    monkeypatch.setattr(grade_batch, "LOCK_SECONDS", 0.2)
    group.add("anna")
    group.output.mkdir()
    with FileLock(group.output / "batch.lock"):
        assert group.grade()[0] == 2
    message = capfd.readouterr().err
    assert message == f"grader: another batch is at work in {group.output}: wait for its end, or use another --output\n"
    assert group.begun() == []


def test_a_submission_that_kills_its_slot_three_times_gets_no_points(group: Class):
    group.add("once", kills=1)
    group.add("always", kills=99)
    for number in range(4):
        group.add(f"s{number}", seconds=0.1)
    status, output = group.grade()
    assert status == 0
    assert "5 of 6 passed" in output
    assert Counter(group.begun()) == {"once": 2, "always": 3} | {f"s{number}": 1 for number in range(4)}
    row = next(row for row in group.rows() if row["name"] == "always")
    assert (row["points"], row["passed"]) == ("0", "no")
    assert row["message"] == "It ended the process that graded it 3 times, and is not tried again."
    assert group.grade()[0] == 0
    assert group.begun().count("always") == 3


def test_a_failure_of_the_grader_costs_no_points_and_is_tried_again(group: Class):
    group.add("anna", fails=1)
    group.add("bo")
    status, output = group.grade()
    key = journal.read_key(group.output / "journal.jsonl")
    assert (status, len(key)) == (1, 32)
    assert [row["name"] for row in group.rows()] == ["bo"]
    assert "the same command tries again: anna: ZeroDivisionError: a mistake of the grader's [bold]" in output
    assert group.grade()[0] == 0
    assert [row["points"] for row in group.rows()] == ["100", "100"]
    assert journal.read_key(group.output / "journal.jsonl") == key


HOSTILE = [
    '=HYPERLINK("http:x")', "+1", "-1", "@SUM(1)", "\t=1", "＝1", "[bold red]x[blink]", "\x1b[31mred", "a\nb\rc", "..a",
    "\u202egnp.exe", "x" * 255, "аnna", "ß ﬁ", "'", '"', ",", ";rm -rf ~", "$(id)", "%s{0}", "-",
]  # fmt: skip


def test_hostile_names_become_harmless_text(group: Class):
    for name in HOSTILE:
        group.add(name)
    os.makedirs(os.fsencode(group.folder) + b"/\xff\xfe")  # noqa: PTH103
    status, output = group.grade()
    assert status == 0
    assert not any(letter in output for letter in "\x1b\r\t\u202e")
    assert "[bold red]x" in output
    rows = group.rows()
    assert len(rows) == len(HOSTILE) + 1
    for row in rows:
        for value in (row["name"], row["message"]):
            assert not value.strip().startswith(("=", "+", "-", "@", "＝"))
            assert all(map(str.isprintable, value))
    folders = [path.name for path in group.output.iterdir() if path.is_dir()]
    assert sorted(folders) == sorted(row["folder"].removeprefix("'") for row in rows)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(name) < 60 for name in folders)


def test_an_entry_that_is_no_submission_gets_no_points_and_the_reason(group: Class):
    group.add("right")
    (group.folder / "empty").mkdir()
    (group.folder / "notes.txt").write_text("hello")
    (group.folder / "broken.zip").write_bytes(b"PK\3\4 and no more")
    (group.folder / "link").symlink_to(group.folder / "right")
    status, output = group.grade()
    assert status == 0
    assert "4 of 5 submissions have a result" in output
    assert "1 of 5 passed" in output
    rows = {row["name"]: row for row in group.rows()}
    assert "train.py" in rows["empty"]["message"]
    assert "link" in rows["link"]["message"]
    for name in ("empty", "notes.txt", "broken.zip", "link"):
        assert (rows[name]["points"], rows[name]["passed"], rows[name]["begins"]) == ("0", "no", "")
        assert rows[name]["message"]
        assert "\n" not in rows[name]["message"]
        assert group.report(name)["rows"][0]["message"] == rows[name]["message"]
    (group.folder / "notes.txt").unlink()
    group.add("notes.txt")
    assert group.grade()[0] == 0
    assert {row["name"]: row["points"] for row in group.rows()}["notes.txt"] == "100"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda group: None, "has 0 entries: a batch takes 1 to 1,000 submissions"),
        (lambda group: [(group.folder / f"{n}").touch() for n in range(1001)], "has 1,001 entries"),
        (lambda group: group.folder.rmdir(), "is not a folder of submissions"),
        (lambda group: group.output.touch(), "File exists"),
    ],
)
def test_bad_input_is_reported_in_one_line(prepare: Callable, message: str, group: Class, capfd):
    prepare(group)
    assert group.grade()[0] == 2
    message_shown = capfd.readouterr().err
    assert message in message_shown
    assert message_shown.startswith("grader: ")
    assert message_shown.count("\n") == 1


def test_an_output_folder_among_the_submissions_is_refused(group: Class, capfd):
    group.add("anna")
    group.output = group.folder / "graded"
    assert group.grade()[0] == 2
    assert "whose entries are submissions" in capfd.readouterr().err
    assert not group.output.exists()


@pytest.mark.slow
def test_a_class_of_two_is_graded_on_four_real_workers(group: Class):
    """This takes about a minute."""
    shutil.copytree(REPOSITORY / "solutions" / "assignment", group.folder / "anna")
    (group.folder / "bo").mkdir()
    options = ["--profile", "fast", "--key", "a test's key", "--output", group.output]
    done = run_python("-m", "grader", "batch", group.folder, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    right, wrong = group.rows()
    assert (right["name"], right["points"], right["passed"], right["message"]) == ("anna", "100", "yes", "")
    assert (wrong["name"], wrong["points"], wrong["passed"]) == ("bo", "0", "no")
    assert "train.py" in wrong["message"]
    written = group.report("anna")
    assert written["submission"] == "anna"
    assert "a test's key" not in json.dumps(written)
    assert written["record"]["key_sha256"] == hashlib.sha256(b"a test's key").hexdigest()
    assert written["isolation"].startswith("bubblewrap")
    page = (group.output / right["folder"] / "report.html").read_text()
    assert "<title>100 of 100: anna</title>" in page
    assert str(group.root) not in page
    again = run_python("-m", "grader", "batch", group.folder, *options)
    assert again.returncode == 0
    assert "2 of 2 submissions have a result" in again.stdout
    assert not [
        process for process in psutil.process_iter(["cmdline"]) if str(group.root) in str(process.info["cmdline"])
    ]


def test_a_machine_with_a_full_disk_leaves_its_submission_to_another(group: Class):
    group.add("anna", full=1)
    group.add("ben", seconds=1)
    assert group.grade()[0] == 0
    assert [(row["name"], row["points"]) for row in group.rows()] == [("anna", "100"), ("ben", "100")]
    assert group.begun().count("anna") == 2


def test_a_batch_ends_if_all_disks_are_full_and_goes_on_later(group: Class, capfd):
    group.add("anna", full=9)
    assert group.grade()[0] == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 1 and "cannot write to its disk (No space left on device). Free some space there" in told
    group.add("anna")
    assert group.grade()[0] == 0
