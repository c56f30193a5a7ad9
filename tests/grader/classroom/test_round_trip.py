"""Work comes in as a platform's download, is graded, and goes out as the table that the platform imports.

The three learners hand in the same notebook on each of four platforms. All of it is graded in one course.
"""

import csv
import io
import zipfile
from pathlib import Path

import nbformat
import pytest
from rich.console import Console

from grader import exercises
from grader.__main__ import main
from grader.classroom import policy
from grader.classroom.course import Course
from grader.classroom.grading.autograde import AutogradeOptions, autograde
from grader.classroom.publishing import feedback_package, release
from grader.classroom.publishing.feedback import make_page
from grader.notebooks.build import SOLUTIONS
from tests.grader.exercises.test_sandboxed import PLAIN
from tests.support import synthetic_class
from tests.support.files import as_folder, as_zip

NOTEBOOK = synthetic_class.NOTEBOOKS[1]
IDS = synthetic_class.ANSWERS[NOTEBOOK]
POINTS = 12
LEARNERS = (("Ada", "Lovelace"), ("Grace", "Hopper"), ("Zoë", "Müller"))
CANVAS = f"""Student,ID,SIS User ID,SIS Login ID,Section,Essay (77),{NOTEBOOK} (78),Current Score
    Points Possible,,,,,10,{POINTS},(read only)
"Lovelace, Ada",1001,S1,ada.l,A,9,,90
"Hopper, Grace",1002,S2,grace.h,A,,,
"Müller, Zoë",1003,S3,zoe.m,B,8,,80
"Knuth, Don",1004,S4,dknuth,B,7,,70
"Student, Test",,,,,,,
"""
MOODLE = f"""First name,Last name,ID number,Email address,Assignment: {NOTEBOOK} (Real),Last downloaded from this course
Ada,Lovelace,S1,ada@example.org,-,1700000000
Grace,Hopper,S2,grace@example.org,-,1700000000
Zoë,Müller,S3,zoe@example.org,-,1700000000
"""
WORKSHEET = f"""Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),Feedback comments
Participant 5,Ada Lovelace,ada@example.org,Submitted for grading,,{POINTS}.00,-,
Participant 6,Grace Hopper,grace@example.org,Submitted for grading,,{POINTS}.00,-,
Participant 7,Zoë Müller,zoe@example.org,Submitted for grading,,{POINTS}.00,-,
"""
TITLE = f"{NOTEBOOK} [Total Pts: {POINTS} Score] |4711"
BLACKBOARD = f"""Last Name\tFirst Name\tUsername\tStudent ID\tAvailability\t{TITLE}
Lovelace\tAda\talovelace\tS1\tYes\t
Hopper\tGrace\tghopper\tS2\tYes\t
Müller\tZoë\tzmueller\tS3\tYes\t
"""
ITEM = f"{NOTEBOOK} Points Grade <Numeric MaxPoints:{POINTS}>"
BRIGHTSPACE = f"""OrgDefinedId,Username,Last Name,First Name,{ITEM},End-of-Line Indicator
#S1,#adal,King,Ada,,#
#S2,#graceh,Murray,Grace,,#
#S3,#zoem,Mayer,Zoë,,#
"""
ROSTERS = {
    "canvas": (CANVAS, "utf-8"), "moodle": (MOODLE, "utf-8-sig"), "blackboard": (BLACKBOARD, "utf-16"),
    "brightspace": (BRIGHTSPACE, "utf-8"),
}  # fmt: skip
COLUMNS = {
    "canvas": f"{NOTEBOOK} (78)", "moodle": f"Assignment: {NOTEBOOK} (Real)", "blackboard": TITLE,
    "brightspace": ITEM,
}  # fmt: skip


def answered(course: Course, known: int) -> bytes:
    """Return the released notebook with the first `known` answers."""
    notebook = nbformat.read(course.folder("release", ".", NOTEBOOK) / f"{NOTEBOOK}.ipynb", as_version=4)
    for id in IDS[:known]:
        synthetic_class._cell(notebook, id).source = PLAIN[id]
    return nbformat.writes(notebook).encode()


def downloads(course: Course, folder: Path) -> list[Path]:
    """Write each platform's bulk download of the three learners' notebooks. They know three, two and one answer."""
    ada, grace, zoe = (answered(course, known) for known in (3, 2, 1))
    name = f"{NOTEBOOK}.ipynb"
    canvas = {
        f"lovelaceada_1001_501_{name}": ada, f"hoppergrace_LATE_1002_502_{NOTEBOOK}-1.ipynb": grace,
        f"müllerzoë_1003_503_{name}": zoe,
    }  # fmt: skip
    moodle = {
        f"Ada Lovelace_5_assignsubmission_file/{name}": ada, f"Grace Hopper_6_assignsubmission_file/{name}": grace,
        f"Zoë Müller_7_assignsubmission_file/{name}": zoe,
    }  # fmt: skip
    start, first, last = "Homework 6", "attempt_2026-01-30-08-00-00", "attempt_2026-01-31-08-00-00"
    blackboard = {
        f"{start}_alovelace_{first}_{name}": zoe, f"{start}_alovelace_{last}_{name}": ada,
        f"{start}_ghopper_{last}_{name}": grace, f"{start}_zmueller_{last}_{name}": zoe,
    }  # fmt: skip
    brightspace = {
        f"11-99 - Ada King - Jan 31, 2026 800 AM/{name}": ada,
        f"12-99 - Grace Murray - Jan 31, 2026 900 PM/{name}": grace,
        f"13-99 - Zoë Mayer - Jan 31, 2026 1200 PM/{name}": zoe, "index.html": b"",
    }  # fmt: skip
    return [
        as_zip(folder / "canvas.zip", canvas), as_folder(folder / "moodle", moodle),
        as_folder(folder / "blackboard", blackboard), as_zip(folder / "brightspace.zip", brightspace),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the course and of the downloads."""
    return tmp_path_factory.mktemp("class")


@pytest.fixture(scope="module")
def course(folder: Path) -> Course:
    """Return a course in which the four downloads are graded."""
    course = Course(folder / "work")
    course.root.mkdir()
    (course.root / policy.FILE).write_text(f'lessons = ["{NOTEBOOK}"]')
    release.release(course, SOLUTIONS)
    for download in downloads(course, folder):
        result = autograde(course, AutogradeOptions(profile="fast", source=download), Console())
        assert result.failures == {}
    return course


@pytest.fixture(scope="module")
def earned(course: Course) -> list[float]:
    """Return the points of the three learners: some exercises are worth more than others."""
    return [sum(exercises.get(id).points for id in IDS[:known]) for known in (3, 2, 1)]


def exported(course: Course, folder: Path, platform: str, roster: str, encoding: str, *options: str) -> tuple[int, str]:
    """Export the grades into a table. Return the exit status and the new table."""
    (folder / "roster.csv").write_text(roster, encoding=encoding, newline="")
    arguments = ["export", "--course", str(course.root), "--for", platform, "--roster", str(folder / "roster.csv")]
    status = main([*arguments, *options])
    return status, (course.root / "export" / f"{platform}.csv").read_text(encoding)


def rows(text: str) -> list[dict[str, str]]:
    delimiter = "\t" if "\t" in text else ","
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


@pytest.mark.parametrize("platform", ROSTERS)
def test_the_platform_gets_its_own_table_back_with_grades(
    course: Course, earned: list[float], tmp_path: Path, capsys, platform: str
):
    roster, encoding = ROSTERS[platform]
    _, text = exported(course, tmp_path, platform, roster, encoding)
    before, after = rows(roster), rows(text)
    graded = [row for row in after if row[COLUMNS[platform]] and "Possible" not in next(iter(row.values()))]
    assert [float(row[COLUMNS[platform]]) for row in graded] == earned
    kept = [title for title in before[0] if title != COLUMNS[platform]]
    assert [[row[title] for title in kept] for row in after] == [[row[title] for title in kept] for row in before]
    titles = text.splitlines()[0].split("\t" if platform == "blackboard" else ",")
    assert titles[-1] == roster.splitlines()[0].split("\t" if platform == "blackboard" else ",")[-1]
    capsys.readouterr()


def test_who_has_no_row_is_named_and_the_exit_status_says_so(course: Course, tmp_path: Path, capsys):
    status, _ = exported(course, tmp_path, "blackboard", BLACKBOARD, "utf-16")
    told = capsys.readouterr()
    assert status == 1, "learners of the other platforms are not in this table"
    assert "lovelaceada-1001 is not in the table: no row of the table fits" in told.err
    assert "alovelace" not in told.err.replace("lovelaceada", "")


def test_moodles_worksheet_is_of_one_assignment(course: Course, earned: list[float], tmp_path: Path, capsys):
    _, text = exported(course, tmp_path, "moodle", WORKSHEET, "utf-8", "--assignment", NOTEBOOK)
    assert [float(row["Grade"]) for row in rows(text)] == earned
    (tmp_path / "roster.csv").write_text(WORKSHEET)
    options = ["--for", "moodle", "--roster", str(tmp_path / "roster.csv")]
    assert main(["export", "--course", str(course.root), *options]) == 2
    assert "is the grading worksheet of one assignment: name it with --assignment" in capsys.readouterr().err


def test_per_cent_and_other_points_of_the_platform(course: Course, earned: list[float], tmp_path: Path, capsys):
    hundred = CANVAS.replace(f",10,{POINTS},", ",10,100,")
    with_points = ["--for", "canvas", "--roster", str(tmp_path / "roster.csv")]
    (tmp_path / "roster.csv").write_text(hundred)
    assert main(["export", "--course", str(course.root), *with_points]) == 2
    assert f"has 100 points in the table, and the grades are out of {POINTS}: change" in capsys.readouterr().err
    _, text = exported(course, tmp_path, "canvas", hundred, "utf-8", "--as", "percent")
    given = [float(row[COLUMNS["canvas"]]) for row in rows(text)[1:4]]
    assert given == pytest.approx([points / POINTS * 100 for points in earned], abs=0.01)


def test_two_rows_of_one_name_are_not_guessed(course: Course, tmp_path: Path, capsys):
    twice = MOODLE + "Ada,Lovelace,S9,another@example.org,-,1700000000\n"
    status, text = exported(course, tmp_path, "moodle", twice, "utf-8")
    assert status == 1
    assert "Ada-Lovelace is not in the table: several rows of the table fit" in capsys.readouterr().err
    assert [row[COLUMNS["moodle"]] for row in rows(text) if row["First name"] == "Ada"] == ["-", "-"]


@pytest.mark.parametrize(
    ("content", "platform", "message"),
    [
        (b"", "canvas", "is no table of separated cells"),
        (b"\xff\xfe\x00", "canvas", "is no table of separated cells"),
        (b"a,b\n1,2\n", "canvas", "the table has no column Student, ID; its columns: a, b"),
        (b"Username,X\n", "brightspace", "the table has no column End-of-Line Indicator"),
        (f"Username,{NOTEBOOK} [Pts: 1],{NOTEBOOK} [Pts: 2]\n".encode(), "blackboard", "the table has several columns"),
        (
            b"Student,ID,Lab 3 (5)\n",
            "canvas",
            f"the table has no column for {NOTEBOOK}; it has: 'Student', 'ID', 'Lab 3 (5)'",
        ),
    ],
)
def test_a_table_of_another_form_is_refused_in_one_line(
    course: Course, tmp_path: Path, capsys, content: bytes, platform: str, message: str
):
    (tmp_path / "roster.csv").write_bytes(content)
    options = ["--for", platform, "--roster", str(tmp_path / "roster.csv")]
    assert main(["export", "--course", str(course.root), *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--for", "canvas"], "name the file with --roster"),
        (["--roster", "x.csv"], "name the platform of the table"),
        (["--assignment", "x"], "name the platform of the table"),
        (["--as", "percent"], "name the platform of the table"),
    ],
)
def test_platform_and_table_belong_together(course: Course, capsys, options: list[str], message: str):
    assert main(["export", "--course", str(course.root), *options]) == 2
    assert message in capsys.readouterr().err


def test_the_policy_says_how_the_platform_calls_an_assignment(course: Course, earned: list[float], tmp_path: Path):
    path = course.root / policy.FILE
    before = path.read_text()
    path.write_text(f'[assignments.{NOTEBOOK}]\ncolumn = "Lab 6"\n')
    try:
        _, text = exported(course, tmp_path, "canvas", CANVAS.replace(NOTEBOOK, "Lab 6"), "utf-8")
    finally:
        path.write_text(before)
    assert [float(row["Lab 6 (78)"]) for row in rows(text)[1:4]] == earned


@pytest.mark.parametrize(
    ("download", "student", "page"),
    [
        ("canvas.zip", "lovelaceada-1001", f"lovelaceada_1001_501_{NOTEBOOK}.html"),
        ("moodle", "Ada-Lovelace", f"Ada Lovelace_5_assignsubmission_file/{NOTEBOOK}.html"),
        ("brightspace.zip", "Ada-King", f"11-99 - Ada King - Jan 31, 2026 800 AM/{NOTEBOOK}.html"),
    ],
)
def test_pages_are_packed_under_the_names_by_which_the_platform_finds_the_student(
    course: Course, folder: Path, download: str, student: str, page: str
):
    make_page(course, student, NOTEBOOK)
    package = feedback_package.pack(course, folder / download, [(student, NOTEBOOK)])
    assert package.pages == 1
    assert len(package.left_out) == len(LEARNERS) - 1
    assert all(text.endswith("there is no page") for text in package.left_out)
    with zipfile.ZipFile(package.path) as archive:
        assert archive.namelist() == [page]
        assert archive.read(page) == (course.folder("feedback", student, NOTEBOOK) / f"{NOTEBOOK}.html").read_bytes()


def test_a_namesake_of_another_download_does_not_get_the_page(course: Course, folder: Path):
    make_page(course, "Ada-Lovelace", NOTEBOOK)
    files = {f"Ada Lovelace_8_assignsubmission_file/{NOTEBOOK}.ipynb": answered(course, 1)}
    package = feedback_package.pack(course, as_folder(folder / "second", files), [("Ada-Lovelace", NOTEBOOK)])
    assert package.pages == 0
    assert "a student Ada-Lovelace with the number 5 has handed in before" in package.left_out[0]


@pytest.mark.parametrize(
    ("around", "handed_in", "page"),
    [
        ("submissions/", f"{NOTEBOOK}.ipynb", f"lovelaceada_1001_501_{NOTEBOOK}.html"),
        ("", f"my.zip/{NOTEBOOK}.ipynb", f"lovelaceada_1001_501_my_{NOTEBOOK}.html"),
    ],
)
def test_a_page_keeps_the_platforms_name_in_other_forms_of_the_download(
    course: Course, folder: Path, tmp_path: Path, around: str, handed_in: str, page: str
):
    make_page(course, "lovelaceada-1001", NOTEBOOK)
    first, _, inner = handed_in.partition("/")
    content = answered(course, 3)
    if inner:
        content = as_zip(tmp_path / "inner.zip", {inner: content}).read_bytes()
    files = {
        f"{around}lovelaceada_1001_501_{first}": content,
        f"{around}hoppergrace_1002_502_{NOTEBOOK}.ipynb": answered(course, 2),
    }
    package = feedback_package.pack(course, as_zip(tmp_path / "download.zip", files), [("lovelaceada-1001", NOTEBOOK)])
    with zipfile.ZipFile(package.path) as archive:
        assert page in archive.namelist()


def test_a_download_that_was_not_taken_in_gives_no_pages(course: Course, tmp_path: Path):
    """Its Ada could be a namesake of the one whose page lies there, if that one came without a number."""
    (course.root / "people.json").rename(tmp_path / "people.json")
    try:
        files = {f"Ada Lovelace_5_assignsubmission_file/{NOTEBOOK}.ipynb": answered(course, 1)}
        package = feedback_package.pack(course, as_folder(tmp_path / "new", files), [("Ada-Lovelace", NOTEBOOK)])
    finally:
        (tmp_path / "people.json").rename(course.root / "people.json")
    assert package.pages == 0
    assert "has not been taken in; run make autograde with this download first" in package.left_out[0]
