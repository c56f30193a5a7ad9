"""The rules in policy.toml are read, checked, and applied to a graded class."""

import csv
import shutil
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook
from rich.console import Console

from cifar import data
from grader.__main__ import main
from grader.classroom import policy
from grader.classroom.collecting.student_submission import StudentSubmission
from grader.classroom.course import Course
from grader.classroom.grading import attempts, record
from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.policy import Policy, PolicyError
from grader.classroom.publishing import release
from grader.classroom.publishing.export import export
from grader.notebooks.build import SOLUTIONS
from tests.grader.classroom.conftest import Graded, copy, points
from tests.grader.exercises.test_sandboxed import PLAIN
from tests.support import synthetic_class

ASSIGNMENTS = ["03_data_parallelism_by_hand", "06_techniques"]
NOTEBOOK = synthetic_class.NOTEBOOKS[1]
RIGHT, OTHER = synthetic_class.name(0), synthetic_class.name(1)
OPTIONS = AutogradeOptions(profile=synthetic_class.PROFILE)


def read(folder: Path, text: str) -> Policy:
    (folder / policy.FILE).write_text(text)
    return policy.load(folder, ASSIGNMENTS)


def test_without_a_file_and_with_the_file_of_a_new_course_the_policy_is_the_usual_one(tmp_path: Path):
    assert policy.load(tmp_path, ASSIGNMENTS) == Policy()
    assert read(tmp_path, Path(policy.__file__).with_name(policy.FILE).read_text()) == Policy()


def test_the_examples_in_the_file_of_a_new_course_are_entries(tmp_path: Path):
    text = Path(policy.__file__).with_name(policy.FILE).read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    entries = [line for line in lines if line.startswith("[") or " = " in line]
    (tmp_path / policy.FILE).write_text("\n".join(entries))
    read = policy.load(tmp_path, ["02_one_worker", "03_data_parallelism_by_hand", "08_assignment"])
    assert (read.attempts.best_of, read.program.target) == (3, 0.8)
    assert (read.assignment("02_one_worker").factor, read.assignment("08_assignment").factor) == (0, 0.5)
    due = read.extensions["alovelace"]["03_data_parallelism_by_hand"]
    assert due.astimezone(UTC) == datetime(2026, 2, 1, 22, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("late", "is no TOML file: "),
        ("[late]\nshare = 0.1", "there is no entry 'late.share'"),
        ("[late]\nshare_per_day = 10", "late.share_per_day = 10: input should be less than or equal to 1"),
        ("[late]\nshare_per_day = '0.1'", "late.share_per_day = 0.1: input should be a valid number"),
        ("[attempts]\nbest_of = 0", "attempts.best_of = 0: input should be greater than or equal to 1"),
        ("[attempts]\nbest_of = true", "attempts.best_of = True: input should be a valid integer"),
        ("[program]\ntarget = 86.8", "program.target = 86.8: input should be less than 1"),
        ("[assignments.06_techniques]\nweight = -1", "assignments.06_techniques.weight = -1: input should be greater"),
        ("[assignments.6]\ndropped = true", "no assignment '6'; released are: 03_data"),
        ("[extensions.ada]\n06_techniques = 2026-02-01", "extensions.ada.06_techniques = 2026-02-01: "),
        ("[extensions.ada]\n06_techniques = 2026-02-01T12:00:00", "a time needs its zone, as in "),
        ("[extensions.ada]\nlesson = 2026-02-01T12:00:00Z", "no assignment 'lesson'; released are: 03_data"),
        ("[late]\na = 1\nb = 2", "there is no entry 'late.a'; there is no entry 'late.b'"),
    ],
)
def test_each_wrong_entry_is_named_in_one_line(tmp_path: Path, text: str, message: str):
    with pytest.raises(PolicyError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / policy.FILE))


@pytest.mark.parametrize("command", ["autograde", "export", "feedback"])
def test_the_commands_stop_at_a_wrong_entry(graded: Graded, tmp_path: Path, capsys, command: str):
    course = copy(graded, tmp_path / "work")
    (course.root / policy.FILE).write_text("[late]\nshare_per_day = 10")
    assert main([command, "--course", str(course.root)]) == 2
    assert "policy.toml: late.share_per_day = 10: " in capsys.readouterr().err


def exported(course: Course, student: str) -> dict[str, str]:
    """Export, and return a student's row. Each column has the assignment's name, without what stands behind it."""
    table, _ = export(Course(course.root))
    row = next(row for row in csv.DictReader(table.open(newline="")) if row["student"] == student)
    return {column.partition(" (")[0]: cell for column, cell in row.items()}


def set_due_date(gradebook: Gradebook, name: str) -> None:
    """Set a due date that is a day and a half before everybody's time stamp."""
    gradebook.find_assignment(name).duedate = datetime(2025, 12, 31, 0, 0)
    gradebook.db.commit()


def test_a_late_submission_loses_a_share_per_day_and_an_extension_gives_it_back(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    with course.gradebook as gradebook:
        set_due_date(gradebook, NOTEBOOK)
    full, late = points(course, RIGHT, NOTEBOOK), "[late]\nshare_per_day = 0.1\n"
    (course.root / policy.FILE).write_text(late)
    assert float(exported(course, RIGHT)[NOTEBOOK]) == pytest.approx(0.8 * full)
    (course.root / policy.FILE).write_text(late + "max_share = 0.15\n")
    assert float(exported(course, RIGHT)[NOTEBOOK]) == pytest.approx(0.85 * full)
    (course.root / policy.FILE).write_text(f"{late}[extensions.{RIGHT}]\n{NOTEBOOK} = 2026-01-02T00:00:00Z\n")
    assert float(exported(course, RIGHT)[NOTEBOOK]) == pytest.approx(full)
    assert float(exported(course, OTHER)[NOTEBOOK]) == pytest.approx(0.8 * points(course, OTHER, NOTEBOOK))
    (course.root / policy.FILE).write_text(late)
    assert float(exported(course, RIGHT)[NOTEBOOK]) == pytest.approx(0.8 * full)


def test_the_total_has_the_weights_and_leaves_out_what_is_dropped(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    other, program = synthetic_class.NOTEBOOKS[0], synthetic_class.PROGRAM
    plain = exported(course, RIGHT)
    assert float(plain["total"]) == pytest.approx(sum(float(plain[name]) for name in (NOTEBOOK, other, program)))
    rules = f"[assignments.{other}]\ndropped = true\n[assignments.{program}]\nweight = 0.5\n"
    (course.root / policy.FILE).write_text(rules)
    row = exported(course, RIGHT)
    assert [row[name] for name in (NOTEBOOK, other, program)] == [plain[name] for name in (NOTEBOOK, other, program)]
    assert float(row["total"]) == pytest.approx(float(row[NOTEBOOK]) + 0.5 * float(row[program]))
    header = (course.root / "export" / "grades.csv").read_text().splitlines()[0]
    assert "dropped)" in header and "weight 0.5)" in header


def hand_in(course: Course, student: str, cells: dict[str, str]) -> None:
    """Hand in a notebook once more, with these answers."""
    path = course.folder("submitted", student, NOTEBOOK) / f"{NOTEBOOK}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if (id := cell.metadata.get("nbgrader", {}).get("grade_id")) in cells:
            cell.source = cells[id]
    nbformat.write(notebook, path)


def graded_again(course: Course) -> str:
    """Grade the class again, and return what is printed."""
    console = Console(record=True, width=200)
    assert autograde(Course(course.root), OPTIONS, console).failures == {}
    return console.export_text()


WORSE = {"trust_ratio": synthetic_class.STUB}
RIGHT_AGAIN = {"trust_ratio": PLAIN["trust_ratio"] + "\n# once more"}


def test_the_last_attempt_counts_and_what_has_changed_is_told(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    before = points(course, RIGHT, NOTEBOOK)
    hand_in(course, RIGHT, WORSE)
    said = graded_again(course)
    assert f"{RIGHT}, {NOTEBOOK}: {before - 4:g} points" in said and f"{before:g} points before" in said
    assert "trust_ratio, an answer: no such line before, 0 now" in said
    grade = record.load(course.record(RIGHT, NOTEBOOK))
    assert (grade.attempt, grade.counted, grade.points) == (2, 2, before - 4)
    with course.gradebook as gradebook:
        assert gradebook.find_submission(NOTEBOOK, RIGHT).score == pytest.approx(before - 4)


def test_the_best_of_several_attempts_counts_and_no_more_are_graded(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    (course.root / policy.FILE).write_text("[attempts]\nbest_of = 3\n")
    best = points(course, RIGHT, NOTEBOOK)
    hand_in(course, RIGHT, WORSE)
    assert "attempt 1 of 2 counts" in graded_again(course)
    grade = record.load(course.record(RIGHT, NOTEBOOK))
    assert (grade.attempt, grade.counted, grade.points) == (2, 1, best)
    with course.gradebook as gradebook:
        assert gradebook.find_submission(NOTEBOOK, RIGHT).score == pytest.approx(best)
    page = nbformat.read(course.folder("autograded", RIGHT, NOTEBOOK) / f"{NOTEBOOK}.ipynb", as_version=4)
    assert "Attempt 2 has" in page.cells[0].source.replace("&#46;", ".")
    hand_in(course, OTHER, RIGHT_AGAIN)
    graded_again(course)
    better = record.load(course.record(OTHER, NOTEBOOK))
    assert (better.attempt, better.counted, better.points) == (2, 2, best)
    for source in ("# three", "# four"):
        hand_in(course, RIGHT, {"trust_ratio": source})
        said = graded_again(course)
    assert "not graded, because 3 attempts were graded" in said
    assert record.load(course.record(RIGHT, NOTEBOOK)).attempt == 3


def test_another_kind_of_run_counts_the_attempts_anew():
    """The first attempt is graded with full runs, after fast runs of both attempts. The second one is new then."""
    one, two = (
        StudentSubmission(RIGHT, synthetic_class.PROGRAM, text, "", {}, "", None, "") for text in (b"one", b"two")
    )
    fast, full = ("fast", None, None), ("full", None, None)
    grade = record.Record(
        source=two.source, profile="fast", lines=[], problems=[], passed=True, graded="", seconds=0, attempt=2,
        sources=[one.source, two.source],
    )  # fmt: skip
    assert [attempts.number(grade, attempt, fast) for attempt in (one, two)] == [1, 2]
    assert [attempts.number(grade, attempt, full) for attempt in (one, two)] == [1, 1]
    again = grade.model_copy(update={"profile": "full", "sources": [one.source]})
    assert [attempts.number(again, attempt, full) for attempt in (one, two)] == [1, 2]


def test_grading_again_by_force_keeps_the_best_attempt_and_loses_no_record(graded: Graded, tmp_path: Path):
    """The first of two attempts counts. Then all attempts are used, and another one is handed in."""
    course = copy(graded, tmp_path / "work")
    (course.root / policy.FILE).write_text("[attempts]\nbest_of = 2\n")
    best = points(course, RIGHT, NOTEBOOK)
    hand_in(course, RIGHT, WORSE)
    graded_again(course)
    again = AutogradeOptions(profile=synthetic_class.PROFILE, student=RIGHT, assignment=NOTEBOOK, force=True)
    for source in (None, "# three"):
        hand_in(course, RIGHT, {"trust_ratio": source} if source else {})
        assert autograde(Course(course.root), again, Console(quiet=True)).failures == {}
        grade = record.load(course.record(RIGHT, NOTEBOOK))
        assert (grade.attempt, grade.counted, grade.points) == (2, 1, best)
    page = nbformat.read(course.folder("autograded", RIGHT, NOTEBOOK) / f"{NOTEBOOK}.ipynb", as_version=4)
    assert [cell.id for cell in page.cells].count(attempts.NOTE) == 1


def test_the_penalty_and_the_extension_decide_which_attempt_is_the_best(graded: Graded, tmp_path: Path):
    """A better attempt that is late loses to an earlier one, unless the student has an extension."""
    course = copy(graded, tmp_path / "work")
    with course.gradebook as gradebook:
        gradebook.find_assignment(NOTEBOOK).duedate = datetime(2026, 1, 2)
        gradebook.db.commit()
    (course.root / policy.FILE).write_text("[attempts]\nbest_of = 3\n[late]\nshare_per_day = 1.0\n")
    for extension, counted in (("", 1), (f"[extensions.{OTHER}]\n{NOTEBOOK} = 2026-02-01T00:00:00Z\n", 3)):
        with (course.root / policy.FILE).open("a") as file:
            file.write(extension)
        hand_in(course, OTHER, {"trust_ratio": PLAIN["trust_ratio"] + f"\n# {counted}"})
        stamp = course.folder("submitted", OTHER, NOTEBOOK) / "timestamp.txt"
        stamp.write_text("2026-01-05 12:00:00.000000 UTC")
        graded_again(course)
        assert record.load(course.record(OTHER, NOTEBOOK)).counted == counted


def test_a_penalty_in_the_old_place_is_not_lost_without_a_word(graded: Graded, tmp_path: Path, capsys):
    course = copy(graded, tmp_path / "work")
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.PerDay.share = 0.3\n")
    assert main(["autograde", "--course", str(course.root)]) == 2
    assert "move c.PerDay.share to policy.toml" in capsys.readouterr().err


def test_an_extension_of_nobody_is_named(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    (course.root / policy.FILE).write_text(f"[extensions.nobody]\n{NOTEBOOK} = 2026-01-02T00:00:00Z\n")
    assert "policy.toml: 'nobody' has an extension, but nobody of this name has submitted anything" in graded_again(
        course
    )


@pytest.mark.slow
def test_another_target_and_other_data_are_those_of_the_program(graded: Graded, tmp_path: Path, cifar10: Path):
    """The programs run again, because the harness judges them by both. One student's program is enough."""
    train, test = (data.Split(one.name, one.images.rot90(dims=(2, 3)), one.labels) for one in data.load(cifar10))
    data.save(tmp_path / "turned", train, test)
    course = copy(graded, tmp_path / "work")
    program = synthetic_class.PROGRAM
    for number in range(1, 6):
        shutil.rmtree(course.root / "submitted" / synthetic_class.name(number))
    assert record.load(course.record(RIGHT, program)).passed
    (course.root / policy.FILE).write_text(f"[program]\ntarget = 0.99\ndata = '{tmp_path / 'turned'}'\n")
    said = graded_again(course)
    (report,) = course.harness.glob("*-target-0.99-data-*/*/report.json")
    assert "the target is 99.00%" in report.read_text()
    assert str(tmp_path / "turned") in (report.parents[1] / "journal.jsonl").read_text()
    assert not record.load(course.record(RIGHT, program)).passed and "points before" in said


def test_the_policy_chooses_lessons_and_says_when_they_are_due(tmp_path: Path):
    course = Course(tmp_path / "work")
    course.root.mkdir()
    path = course.root / policy.FILE
    path.write_text(
        'lessons = ["00", "02", "06_techniques", "13"]\n[assignments.02_one_worker]\ndue = 2026-03-01T23:59:00+01:00'
    )
    assert release.release(course, SOLUTIONS) == ["02_one_worker", "06_techniques"]
    assert course.assignments == ["02_one_worker", "06_techniques"]
    with course.gradebook as gradebook:
        assert gradebook.find_assignment("02_one_worker").duedate == datetime(2026, 3, 1, 22, 59)
        assert gradebook.find_assignment("06_techniques").duedate is None
    course.folder("submitted", "ada", "02_one_worker").mkdir(parents=True)
    waiting = release._exchange(course, "inbound") / "ada+06_techniques+2026-01-01 12:00:00 UTC+5a5a"
    waiting.mkdir(parents=True)
    path.write_text('lessons = ["01"]')
    assert release.release(Course(course.root), SOLUTIONS) == ["01_gradient_descent_and_noise"]
    submitted = ["02_one_worker", "06_techniques"]
    assert course.assignments == ["01_gradient_descent_and_noise", *submitted], "somebody has submitted both"
    waiting.rmdir()
    release.release(Course(course.root), SOLUTIONS)
    assert course.assignments == ["01_gradient_descent_and_noise", "02_one_worker"]
    with course.gradebook as gradebook:
        assert {one.name for one in gradebook.assignments} == set(course.assignments)
    path.write_text('lessons = ["31"]')
    with pytest.raises(PolicyError, match=r"policy\.toml: no lesson 31; there are: 00_start_here, 01_grad"):
        release.release(Course(course.root), SOLUTIONS)


def test_the_learners_copy_has_the_chosen_lessons(tmp_path: Path):
    (tmp_path / policy.FILE).write_text('lessons = ["00", "02", "13"]')
    assert main(["handout", str(tmp_path / "copy"), "--course", str(tmp_path)]) == 0
    names = {path.name[:2] for path in (tmp_path / "copy" / "notebooks").glob("*.ipynb")}
    assert names == {"00", "02", "13", "98", "99"}


def test_a_wrong_course_or_lesson_makes_no_learners_copy(tmp_path: Path, capsys):
    command = ["handout", str(tmp_path / "copy"), "--course"]
    assert main([*command, str(tmp_path / "nowhere")]) == 2
    assert "has no policy.toml" in capsys.readouterr().err
    (tmp_path / policy.FILE).write_text('lessons = ["3"]')
    assert main([*command, str(tmp_path)]) == 2
    assert "policy.toml: no lesson 3; there are: 00_start_here" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
