"""Bulk downloads of learning platforms are taken in. Of several attempts the last counts, or the best is graded."""

import re
from pathlib import Path, PurePosixPath

import pytest

from grader.classroom.collecting import account, import_submissions, platforms, student_submission
from grader.classroom.course import Course
from tests.support.files import as_folder, as_zip

ONE, TWO, EIGHT = "03_data_parallelism_by_hand", "06_techniques", "08_assignment"
EARLIER = "an earlier attempt, which a later one replaces"
NOT_GRADED = "only the notebook and the program are graded"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Return a course with three released assignments. It has as much of a course as the import needs."""
    for name in (ONE, TWO, EIGHT):
        folder = tmp_path / "work" / "release" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text('{"grade_id": "four_workers"}' if name == EIGHT else "{}")
    (tmp_path / "work" / "nbgrader_config.py").write_text("c = get_config()\n")
    return Course(tmp_path / "work")


def taken_in(
    course: Course, download: Path, attempts: int | None = None
) -> tuple[dict[tuple[str, str], bytes], dict[str, str]]:
    """Return the notebooks that were taken in, by student and assignment, and why other files were not."""
    told = import_submissions.import_submissions(download, course, attempts)
    found = student_submission.find_submissions(course)
    notebooks = {one: student_submission.read_submission(course, *one).notebook for one in found}
    fates = zip(told.names, told.fates, strict=True)
    return notebooks, {name: fate.reason for name, fate in fates if account.state(fate) == account.NOT_GRADED}


@pytest.mark.parametrize("pack", [as_folder, as_zip])
@pytest.mark.parametrize("outer", ["", "submissions/"])
def test_canvas(course: Course, tmp_path: Path, outer: str, pack):
    files = {
        f"{outer}lovelaceada_1001_500001_{ONE}.ipynb": b"ada",
        f"{outer}hoppergrace_LATE_1002_500002_{ONE}-1.ipynb": b"grace",
        f"{outer}hoppergrace_1003_500003_{ONE}.ipynb": b"another grace",
        f"{outer}lovelaceada_1001_500004_{TWO} (2).ipynb": b"ada 6",
        f"{outer}lovelaceada_1001_500005_photo.png": b"no work",
        f"{outer}lovelaceada_1001_text.html": b"an entry",
        f"{outer}anon_AbC12_500006_{ONE}.ipynb": b"hidden",
        f"{outer}müllerzoë_1007_500007_{ONE}.ipynb": b"zoe",
    }
    found, reasons = taken_in(course, pack(tmp_path / "download", files))
    assert found == {
        ("lovelaceada-1001", ONE): b"ada", ("hoppergrace-1002", ONE): b"grace", ("anon-AbC12", ONE): b"hidden",
        ("hoppergrace-1003", ONE): b"another grace", ("lovelaceada-1001", TWO): b"ada 6",
        ("mullerzoe-1007", ONE): b"zoe",
    }  # fmt: skip
    names = (f"{outer}lovelaceada_1001_500005_photo.png", f"{outer}lovelaceada_1001_text.html")
    assert reasons == dict.fromkeys(names, NOT_GRADED)


def test_canvas_has_no_folders_so_a_program_comes_as_an_archive_or_as_files(course: Course, tmp_path: Path):
    program = as_zip(tmp_path / "p.zip", {"my_assignment/train.py": b"1", "my_assignment/net.py": b"2"}).read_bytes()
    files = {
        f"a_1_11_{EIGHT}.ipynb": b"a", "a_1_12_my_assignment.zip": program,
        f"b_2_21_{EIGHT}.ipynb": b"b", "b_2_22_train-2.py": b"1", "b_2_23_net.py": b"2", "b_2_20_train.py": b"old",
        "c_3_31_my_assignment.zip": program,
    }  # fmt: skip
    _, reasons = taken_in(course, as_folder(tmp_path / "download", files))
    assert reasons == {"b_2_20_train.py": EARLIER}
    for student in ("a-1", "b-2", "c-3"):
        submission = student_submission.read_submission(course, student, EIGHT)
        assert submission.program == {"train.py": b"1", "net.py": b"2"}


TIME, LATER = "2026-01-31-08-00-00", "2026-01-31-09-00-00"


@pytest.mark.parametrize(
    ("sent", "student"),
    [
        (f"mallory_1007_507_my.zip/hoppergrace_1002_502_{ONE}.ipynb", "mallory-1007"),
        (f"Mallory_7_assignsubmission_file/hoppergrace_1002_502_{ONE}.ipynb", "Mallory"),
        (f"Mallory_7_assignsubmission_file/Grace Hopper_6_assignsubmission_file/{ONE}.ipynb", "Mallory"),
        (f"7-99 - Mallory - Jan 31, 2026 800 AM/6-99 - Grace - Jan 31, 2026 900 PM/{ONE}.ipynb", "Mallory"),
        (f"HW_mallory_attempt_{TIME}_x_grace_attempt_{LATER}_{ONE}.ipynb", "mallory"),
        (f"mallory_1007_507_HW_hoppergrace-1002_attempt_{TIME}_{ONE}.ipynb", "mallory-1007"),
        (f"anon_1007_507_HW_hoppergrace-1002_attempt_{TIME}_{ONE}.ipynb", "anon-1007"),
        (f"HW_mallory_attempt_{TIME}_1002_502_{ONE}.ipynb", "mallory"),
        (f"Mallory_7_assignsubmission_file_x_6_assignsubmission_.zip/{ONE}.ipynb", "Mallory"),
        (f"Mallory_7_assignsubmission_file_x_6_2_y.zip/{ONE}.ipynb", "Mallory"),
    ],
)
def test_nobody_can_hand_in_for_another_by_a_name_of_their_own(course: Course, tmp_path: Path, sent: str, student: str):
    """The download holds the work of one learner only, so that all paths begin with the same folder."""
    first, _, inner = sent.partition("/")
    content = as_zip(tmp_path / "my.zip", {inner: b"forged"}).read_bytes() if first.endswith(".zip") else b"forged"
    download = as_folder(tmp_path / "download", {first if first.endswith(".zip") else sent: content})
    fates = import_submissions.import_submissions(download, course).fates
    assert {home.student for fate in fates for home in fate.homes} <= {student}
    assert {fate.person for fate in fates if fate.person} <= {"7", "507", "1007", "Mallory", "HW_mallory"}
    assert any(fate.person for fate in fates), "the file was read as somebody's"


def test_in_an_archive_the_highest_notebook_and_program_count(course: Course, tmp_path: Path):
    files = {
        f"{EIGHT}.ipynb": b"mine", f"old/{EIGHT}.ipynb": b"old",
        "my_assignment/train.py": b"mine", "my_assignment/old/train.py": b"old",
    }  # fmt: skip
    packed = as_zip(tmp_path / "my.zip", files).read_bytes()
    sent = {"ada_1_11_my.zip": packed, f"bob_2_22_{EIGHT}.ipynb": b"bob"}
    notebooks, _ = taken_in(course, as_folder(tmp_path / "download", sent))
    assert notebooks["ada-1", EIGHT] == b"mine"
    assert student_submission.read_submission(course, "ada-1", EIGHT).program["train.py"] == b"mine"


def test_late_marks_and_times_are_told(course: Course, tmp_path: Path):
    files = {
        f"hoppergrace_LATE_1002_500002_{ONE}.ipynb": b"", f"lovelaceada_1001_500001_{ONE}.ipynb": b"",
        f"H_knuth_attempt_2026-01-31-23-59-07_{ONE}.ipynb": b"",
    }  # fmt: skip
    download = import_submissions.import_submissions(as_folder(tmp_path / "in", files), course)
    assert "the platform marks as late: hoppergrace-1002" in account.lines(download)
    table = account.save(download, course).read_text().splitlines()
    assert table[0] == '"file","what became of it","student","assignment","late","handed in","reason"'
    assert f'"hoppergrace_LATE_1002_500002_{ONE}.ipynb","graded","hoppergrace-1002","{ONE}","yes","",""' in table
    assert (
        f'"H_knuth_attempt_2026-01-31-23-59-07_{ONE}.ipynb","graded","knuth","{ONE}","","2026-01-31-23-59-07",""'
        in (table)
    )


BLACKBOARD = "Homework 3 (made_up)_alovelace_attempt_2026-01-31"


@pytest.mark.parametrize(("attempts", "counts"), [(None, b"second"), (2, b"second"), (1, b"first")])
def test_blackboard_has_all_attempts(course: Course, tmp_path: Path, attempts: int | None, counts: bytes):
    first, second = f"{BLACKBOARD}-08-00-00_{ONE}.ipynb", f"{BLACKBOARD}-23-59-07_{ONE}.ipynb"
    files = {
        second: b"second", first: b"first", f"{BLACKBOARD}-08-00-00.txt": b"Blackboard's own note",
        f"Homework 3 (made_up)_ghopper_attempt_2026-02-01-00-00-00_{ONE}.ipynb": b"grace",
    }  # fmt: skip
    download = as_zip(tmp_path / "download", files)
    assert import_submissions.most_attempts(download, course) == 2
    found, reasons = taken_in(course, download, attempts)
    assert found == {("alovelace", ONE): counts, ("ghopper", ONE): b"grace"}
    other = {first: EARLIER} if counts == b"second" else {second: "a later attempt than the 1 that are graded"}
    assert reasons == {f"{BLACKBOARD}-08-00-00.txt": NOT_GRADED, **other}


def test_attempts_at_two_assignments_are_counted_apart(course: Course, tmp_path: Path):
    files = {f"HW_ada_attempt_2026-01-31-0{hour}-00-00_{ONE}.ipynb": f"{hour}".encode() for hour in range(1, 5)}
    files |= {
        f"HW_ada_attempt_2026-01-31-04-00-00_{TWO}.ipynb": b"6", "HW_ada_attempt_2026-01-31-04-00-00_notes.txt": b"",
        f"HW_bob_attempt_{TIME}_my.zip": as_zip(tmp_path / "a.zip", {"my_assignment/train.py": b"1"}).read_bytes(),
        f"HW_bob_attempt_{LATER}_my.zip": as_zip(
            tmp_path / "b.zip", {f"{EIGHT}.ipynb": b"8", "my_assignment/train.py": b"2"}
        ).read_bytes(),
    }  # fmt: skip
    download = as_folder(tmp_path / "download", files)
    assert import_submissions.most_attempts(download, course) == 4
    found, reasons = taken_in(course, download, 1)
    assert found[("ada", ONE)] == b"1" and found[("ada", TWO)] == b"6"
    assert student_submission.read_submission(course, "bob", EIGHT).program == {"train.py": b"1"}
    later = f"HW_ada_attempt_2026-01-31-02-00-00_{ONE}.ipynb"
    assert reasons[later] == "a later attempt than the 1 that are graded"
    assert taken_in(course, download, 3)[0][("ada", ONE)] == b"3"


def test_two_users_of_blackboard_who_would_be_one_are_named(course: Course, tmp_path: Path):
    """Their names hold `_`. Nobody can know where the title ends, but that they are two is certain."""
    users = ("john_smith", "anna_smith", "ada", "bob", "1234567")
    files = {f"HW_3_{user}_attempt_{TIME}_{ONE}.ipynb": user.encode() for user in users}
    files |= {f"HW_4_{user}_attempt_{TIME}_{TWO}.ipynb": user.encode() for user in users[2:]}
    found, reasons = taken_in(course, as_folder(tmp_path / "download", files))
    assert found == {(user, name): user.encode() for user in users[2:] for name in (ONE, TWO)}
    assert set(reasons) == {f"HW_3_{user}_attempt_{TIME}_{ONE}.ipynb" for user in users[:2]}
    assert "would be the same student smith" in next(iter(reasons.values()))


def test_the_last_attempt_counts_whatever_its_files_are_called(course: Course, tmp_path: Path):
    first, second = f"{BLACKBOARD}-08-00-00", f"{BLACKBOARD}-23-59-07"
    old = {f"{EIGHT}.ipynb": b"old", "my_assignment/train.py": b"old", "my_assignment/left_out.py": b"old"}
    new = {f"deep/{EIGHT} (1).ipynb": b"new", "deep/my_assignment/train.py": b"new"}
    files = {
        f"{first}_v1.zip": as_zip(tmp_path / "v1.zip", old).read_bytes(),
        f"{second}_v2.zip": as_zip(tmp_path / "v2.zip", new).read_bytes(),
    }
    found, _ = taken_in(course, as_zip(tmp_path / "download", files))
    assert found == {("alovelace", EIGHT): b"new"}
    assert student_submission.read_submission(course, "alovelace", EIGHT).program == {"train.py": b"new"}


def test_brightspace_has_a_folder_for_each_attempt(course: Course, tmp_path: Path):
    files = {
        f"1234-5678 - Ada Lovelace - Jan 31, 2026 1159 PM/{ONE}.ipynb": b"late",
        f"1234-5678 - Ada Lovelace - Jan 31, 2026 902 AM/{ONE}.ipynb": b"early",
        f"1235-5678 - Zoë Made-Up - February 1, 2026 1205 AM/{ONE} (1).ipynb": b"zoe",
        f"1236-5678 - 23304308 Hopper - 05 March 2026 612 PM/{ONE}.ipynb": b"new",
        f"1236-5678 - 23304308 Hopper - 28 February 2026 912 PM/{ONE}.ipynb": b"old",
        f"1237-5678 - Bob - Feb 1, 2026 1205 AM - {ONE}.ipynb": b"a file with this beginning",
        f"1238-5678 - Same Name - Feb 1, 2026 1205 AM/{ONE}.ipynb": b"one person",
        f"1239-5678 - Same Name - Feb 1, 2026 1205 AM/{ONE}.ipynb": b"another one",
        "index.html": b"Brightspace's own page",
    }
    found, reasons = taken_in(course, as_zip(tmp_path / "download", files))
    assert found == {
        ("Ada-Lovelace", ONE): b"late", ("Zoe-Made-Up", ONE): b"zoe", ("23304308-Hopper", ONE): b"new",
        ("Bob", ONE): b"a file with this beginning",
    }  # fmt: skip
    both = (
        "'Same Name (1238)' and 'Same Name (1239)' would be the same student Same-Name; rename their folders or files"
    )
    assert reasons == {
        f"1234-5678 - Ada Lovelace - Jan 31, 2026 902 AM/{ONE}.ipynb": EARLIER,
        f"1236-5678 - 23304308 Hopper - 28 February 2026 912 PM/{ONE}.ipynb": EARLIER,
        f"1238-5678 - Same Name - Feb 1, 2026 1205 AM/{ONE}.ipynb": both,
        f"1239-5678 - Same Name - Feb 1, 2026 1205 AM/{ONE}.ipynb": both,
        "index.html": "it lies in no student's folder; put it into a folder with the student's name",
    }


def test_a_folder_around_programs_is_no_student(course: Course, tmp_path: Path):
    files = {f"class/{who}/my_assignment/train.py": who.encode() for who in ("ada", "bob")}
    download = import_submissions.import_submissions(as_zip(tmp_path / "download", files), course)
    assert {student for student, _ in download.submissions} == {"ada", "bob"}


def test_one_clone_alone_is_its_account(course: Course, tmp_path: Path):
    download = as_zip(tmp_path / "download", {f"homework-3-submissions/homework-3-ada/{ONE}.ipynb": b"ada"})
    assert taken_in(course, download)[0] == {("ada", ONE): b"ada"}


@pytest.mark.parametrize("outer", ["", "homework-3-submissions/"])
def test_a_clone_of_a_classroom_is_its_account(course: Course, tmp_path: Path, outer: str):
    clones = {f"homework-3-{who}/{ONE}.ipynb": who.encode() for who in ("ada", "bob-2")}
    files = {f"{outer}{name}": content for name, content in clones.items()}
    git = f"{outer}homework-3-ada/.git/config"
    folder = tmp_path / ("in" if outer else "homework-3-submissions")
    found, reasons = taken_in(course, as_folder(folder, {**files, git: b""}))
    assert found == {("ada", ONE): b"ada", ("bob-2", ONE): b"bob-2"}
    assert reasons == {git: "a tool made it, like git, Jupyter or macOS"}


def test_the_pattern_of_nbgraders_zip_collector_is_used(course: Course, tmp_path: Path):
    """This is the example of nbgrader's own documentation."""
    pattern = r".*_(?P<student_id>\w+)_attempt_(?P<timestamp>[0-9\-]+)_(?P<file_id>\w+)"
    (course.root / "nbgrader_config.py").write_text(
        f"c = get_config()\nc.FileNameCollectorPlugin.named_regexp = r'{pattern}'\n"
    )
    files = {f"ps1_bitdiddle_attempt_2016-01-30-{hour}-00-00_{ONE}.ipynb": hour.encode() for hour in ("15", "09")}
    found, reasons = taken_in(course, as_folder(tmp_path / "in", files))
    assert found == {("bitdiddle", ONE): b"15"}
    assert set(reasons.values()) == {EARLIER}
    (course.root / "nbgrader_config.py").write_text("c = get_config()\nc.FileNameCollectorPlugin.named_regexp = '('\n")
    with pytest.raises(import_submissions.SubmissionImportError, match="named_regexp is no regular expression"):
        import_submissions.import_submissions(tmp_path / "in", Course(course.root))


@pytest.mark.parametrize("path", [f"ada/{ONE}.ipynb", "a_b/c", "x/y/1_2_3_4.ipynb", "ada_1_2_x/photo.png", "a", "1_2"])
def test_paths_in_no_platforms_form_are_left_alone(path: str):
    assert platforms.read(PurePosixPath(path), re.compile("(?P<other>.*)")) is None
    assert platforms.read(PurePosixPath(path)) is None
