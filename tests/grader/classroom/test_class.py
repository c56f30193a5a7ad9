"""A class of six is graded from release to export. Gradebook, feedback, formgrader and table show the same points."""

import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbgrader.apps import NbGraderAPI
from rich.console import Console

from grader.__main__ import main
from grader.classroom.course import Course, CourseError
from grader.classroom.grading import record
from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.publishing.export import export
from grader.classroom.publishing.feedback import make_page, release_feedback
from grader.classroom.publishing.release import release
from tests.grader.classroom.conftest import STUDENTS, Graded, copy, points
from tests.support import synthetic_class

ALL = [
    (number, assignment)
    for number in range(STUDENTS)
    for assignment in (*synthetic_class.NOTEBOOKS, synthetic_class.PROGRAM)
]
OPTIONS = AutogradeOptions(profile=synthetic_class.PROFILE)
RIGHT, NO_WARMUP, SPY, GARBAGE, KILLED, FORGER = map(synthetic_class.name, range(STUDENTS))


def in_gradebook(course: Course, student: str, assignment: str):
    with course.gradebook as gradebook:
        return gradebook.find_submission(assignment, student).to_dict()


@pytest.mark.parametrize(("number", "assignment"), ALL)
def test_every_grade_is_as_expected(graded: Graded, number: int, assignment: str):
    assert graded.failures == {}
    assert synthetic_class.differences(graded.course, number, assignment) == []


@pytest.mark.parametrize(("number", "assignment"), ALL)
def test_the_gradebook_holds_the_graders_points(graded: Graded, number: int, assignment: str):
    submission = in_gradebook(graded.course, synthetic_class.name(number), assignment)
    assert submission["score"] == pytest.approx(
        points(graded.course, synthetic_class.name(number), assignment), abs=0.01
    )
    assert not submission["needs_manual_grade"]


def test_the_table_agrees_with_the_gradebook(graded: Graded):
    with (graded.course.root / "export" / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert set(rows) == {synthetic_class.name(number) for number in range(STUDENTS)}
    for student, row in rows.items():
        for column in row:
            if (name := column.partition(" (of ")[0]) in (*synthetic_class.NOTEBOOKS, synthetic_class.PROGRAM):
                assert float(row[column]) == pytest.approx(
                    in_gradebook(graded.course, student, name)["score"], abs=0.01
                )


def test_formgrader_shows_the_same_points(graded: Graded):
    api: NbGraderAPI = graded.course.api
    for assignment in (*synthetic_class.NOTEBOOKS, synthetic_class.PROGRAM):
        listed = {submission["student"]: submission for submission in api.get_submissions(assignment)}
        for number in range(STUDENTS):
            submission = listed[synthetic_class.name(number)]
            assert submission["autograded"]
            assert submission["score"] == pytest.approx(
                points(graded.course, submission["student"], assignment), abs=0.01
            )


def page(graded: Graded, student: str, assignment: str) -> str:
    return (graded.course.folder("feedback", student, assignment) / f"{assignment}.html").read_text()


@pytest.mark.parametrize(("number", "assignment"), ALL)
def test_feedback_shows_the_same_points(graded: Graded, number: int, assignment: str):
    """nbgrader's page shows "(Score: x / y)" in its heading."""
    student = synthetic_class.name(number)
    shown = re.search(r"\(Score: ([\d.]+) / ([\d.]+)\)", page(graded, student, assignment))
    assert float(shown[1]) == pytest.approx(points(graded.course, student, assignment), abs=0.01)


def test_an_unknown_student_is_reported_in_one_line(graded: Graded, capsys):
    assert main(["autograde", "--course", str(graded.course.root), "--student", "nobody"]) == 2
    assert "no submission of nobody in" in capsys.readouterr().err


def test_feedback_is_released(graded: Graded):
    outbound = Path(graded.course.config.Exchange.root, graded.course.config.CourseDirectory.course_id, "feedback")
    assert len(list(outbound.glob("*.html"))) == len(ALL)


def test_feedback_holds_the_harness_report(graded: Graded):
    text = page(graded, NO_WARMUP, synthetic_class.PROGRAM)
    assert "of 100 points" in text
    assert "srcdoc=" in text
    assert "warmup" in text.lower()


def test_no_page_holds_a_hidden_test(graded: Graded):
    """A page shows neither right answers nor the key that hidden tests are drawn with."""
    for number, assignment in ALL:
        text = page(graded, synthetic_class.name(number), assignment)
        assert "expected: " not in text
        assert graded.course.key not in text


def test_printed_markup_is_escaped(graded: Graded):
    text = page(graded, SPY, synthetic_class.NOTEBOOKS[0])
    assert "<script>alert(1)</script>" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\x1b" not in graded.output
    assert "\x07" not in text


def test_a_cell_can_read_no_secrets(graded: Graded):
    path = (
        graded.course.folder("autograded", SPY, synthetic_class.NOTEBOOKS[0]) / f"{synthetic_class.NOTEBOOKS[0]}.ipynb"
    )
    outputs = [str(cell.get("outputs")) for cell in nbformat.read(path, as_version=4).cells]
    (output,) = [text for text in outputs if "FOUND" in text]
    assert "FOUND []" in output
    assert "NETWORK b''" in output


def test_an_unreadable_notebook_is_explained_to_the_student(graded: Graded):
    assert "From the grader" in page(graded, GARBAGE, synthetic_class.NOTEBOOKS[0])
    assert "hand in the .ipynb" in page(graded, GARBAGE, synthetic_class.NOTEBOOKS[0]).replace("&#46;", ".")


def test_a_killed_kernel_affects_only_its_own_notebook(graded: Graded):
    problems = record.load(graded.course.record(KILLED, synthetic_class.NOTEBOOKS[0])).problems
    assert len(problems) == 1
    assert "DeadKernelError" in problems[0]
    assert record.load(graded.course.record(KILLED, synthetic_class.NOTEBOOKS[1])).problems == []


def test_rewritten_checks_earn_no_points(graded: Graded):
    path = (
        graded.course.folder("autograded", FORGER, synthetic_class.NOTEBOOKS[1])
        / f"{synthetic_class.NOTEBOOKS[1]}.ipynb"
    )
    checks = [
        cell for cell in nbformat.read(path, as_version=4).cells if cell.metadata.get("nbgrader", {}).get("grade")
    ]
    assert checks
    assert all("1000" not in cell.source and cell.metadata.nbgrader.points < 10 for cell in checks)


def test_the_summary_shows_every_graded_cell(graded: Graded):
    text = (graded.course.root / "export" / "summary.html").read_text()
    cells = [*(id for ids in synthetic_class.ANSWERS.values() for id in ids), "four_workers"]
    for id in cells:
        assert f"<h2>{id} " in text
    assert f"<p>{STUDENTS} learners, {len(ALL)} graded submissions." in text
    assert text.count("data:image/png;base64,") == len(cells)
    assert 'alt="Distribution' in text


def test_the_summary_names_the_lines_that_are_worth_a_look(graded: Graded):
    text = (graded.course.root / "export" / "summary.html").read_text()
    assert "Programs that are worth a look" in text
    assert "<li><code>train.py, line " in text


def snapshot(course: Course) -> dict[str, bytes]:
    watched = [path for step in ("records", "autograded") for path in (course.root / step).rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in watched}


def test_a_second_run_changes_nothing(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    before, grades = snapshot(course), [in_gradebook(course, synthetic_class.name(n), name) for n, name in ALL]
    assert autograde(course, OPTIONS, Console(quiet=True)).failures == {}
    assert release(course, synthetic_class.SOLUTIONS) == []
    assert snapshot(course) == before
    assert [in_gradebook(course, synthetic_class.name(n), name) for n, name in ALL] == grades


def test_a_refused_release_leaves_the_earlier_one(graded: Graded, tmp_path: Path):
    """nbgrader refuses another graded cell in a lesson that has submissions."""
    course, name, solutions = copy(graded, tmp_path / "work"), synthetic_class.NOTEBOOKS[1], tmp_path / "solutions"
    shutil.copytree(synthetic_class.SOLUTIONS, solutions)
    before = {
        path: path.read_bytes() for step in ("source", "release") for path in (course.root / step).rglob("*.ipynb")
    }
    text, other = ((solutions / f"{lesson}.py").read_text() for lesson in (name, "07_famous_results"))
    moved = other[other.index('exercise="updates_made"') - 5 :].split("\n# %%")[0]
    (solutions / "07_famous_results.py").unlink()
    (solutions / f"{name}.py").write_text(f"{text}\n{moved}\n")
    with pytest.raises(CourseError, match=f"{name} cannot be made: .*[Cc]annot add or remove"):
        release(course, solutions)
    assert {path: path.read_bytes() for path in before} == before
    assert name in course.assignments
    assert not list(course.root.glob("release-*"))


def test_the_commands_for_a_class_succeed(graded: Graded, tmp_path: Path, capsys):
    course = copy(graded, tmp_path / "work")
    for command in ("release", "autograde", "feedback", "export"):
        options = ["--profile", synthetic_class.PROFILE] if command == "autograde" else []
        assert main([command, "--course", str(course.root), *options]) == 0
    printed = capsys.readouterr().out
    assert f"{len(ALL)} of {len(ALL)} submissions are graded" in printed
    assert str(course.root / "export" / "grades.csv") in printed.replace("\n", "")


def test_a_student_removed_from_the_gradebook_stops_nothing(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    with course.gradebook as gradebook:
        gradebook.remove_student(NO_WARMUP)
    shutil.rmtree(course.root / "submitted" / NO_WARMUP)
    assert autograde(course, OPTIONS, Console(quiet=True)).failures == {}
    assert release_feedback(course, Console(quiet=True)).failures == []
    export(course)
    assert NO_WARMUP not in {student for student, _ in course.graded}
    assert len(course.graded) == len(ALL) - 3


def test_manual_points_and_comments_survive_a_forced_run(graded: Graded, tmp_path: Path):
    course, name = copy(graded, tmp_path / "work"), synthetic_class.NOTEBOOKS[1]
    with course.gradebook as gradebook:
        gradebook.find_grade("trust_ratio_check", name, name, NO_WARMUP).manual_score = 2.5
        gradebook.find_comment("trust_ratio", name, name, NO_WARMUP).manual_comment = "Half of it was right, orally."
        gradebook.db.commit()
    options = replace(OPTIONS, student=NO_WARMUP, assignment=name, force=True)
    assert autograde(course, options, Console(quiet=True)).failures == {}
    with course.gradebook as gradebook:
        grade = gradebook.find_grade("trust_ratio_check", name, name, NO_WARMUP)
        assert (grade.auto_score, grade.manual_score, grade.score) == (0, 2.5, 2.5)
    (
        course.folder("autograded", NO_WARMUP, name) / ".ipynb_checkpoints"
    ).mkdir()  # JupyterLab makes this folder when somebody opens the notebook.
    make_page(course, NO_WARMUP, name)
    text = (course.folder("feedback", NO_WARMUP, name) / f"{name}.html").read_text()
    assert "Half of it was right, orally." in text
    table, _ = export(course)
    row = next(row for row in csv.DictReader(table.open()) if row["student"] == NO_WARMUP)
    assert float(next(row[column] for column in row if column.startswith(name))) == pytest.approx(
        points(course, NO_WARMUP, name) + 2.5
    )


def test_only_a_changed_submission_is_graded_again(graded: Graded, tmp_path: Path):
    course, name = copy(graded, tmp_path / "work"), synthetic_class.NOTEBOOKS[0]
    good = course.folder("submitted", RIGHT, name) / f"{name}.ipynb"
    shutil.copy(good, course.folder("submitted", GARBAGE, name) / good.name)
    before = snapshot(course)
    assert autograde(course, OPTIONS, Console(quiet=True)).failures == {}
    changed = {path for path, content in snapshot(course).items() if before[path] != content}
    assert changed
    assert all(GARBAGE in path and name in path for path in changed)
    assert points(course, GARBAGE, name) == points(course, RIGHT, name)


def test_nbgraders_autograde_uses_the_grader(graded: Graded, tmp_path: Path):
    """formgrader's button calls this. nbgrader's own autograding would have run the cell as the instructor."""
    course, name = copy(graded, tmp_path / "work"), synthetic_class.NOTEBOOKS[0]
    course.record(SPY, name).unlink()
    result = course.api.autograde(name, SPY)
    assert result["success"], result
    assert synthetic_class.differences(course, 2, name) == []


def test_no_cell_of_the_table_is_a_formula(graded: Graded, tmp_path: Path):
    course = copy(graded, tmp_path / "work")
    with course.gradebook as gradebook:
        gradebook.update_or_create_student(RIGHT, last_name='=cmd|"/c calc"!A1', first_name="+1\n2", email="a@b")
    table, _ = export(course)
    row = next(row for row in csv.DictReader(table.open(newline="")) if row["student"] == RIGHT)
    assert (row["last name"], row["first name"], row["email"]) == ('\'=cmd|"/c calc"!A1', "'+1 2", "a@b")
