"""Each file of a download is graded, opened, or named with a reason: whatever the download looks like."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.classroom.collecting import account, import_submissions
from grader.classroom.course import Course
from tests.conftest import examples

NAMES = ("03_by_hand", "08_assignment")
STUDENTS = (
    "ada", "Zoë M", "Ada L_5_assignsubmission_file", "Ada L_6_assignsubmission_file", "Ada-L", "class", "__MACOSX",
    "12-34 - Ada L - Jan 31, 2026 1159 PM", "12-34 - Ada L - Jan 31, 2026 901 AM", "hw-submissions", "hw-bob", "学",
)  # fmt: skip
FOLDERS = ("", "", "", "my_assignment/", "work/", "work/my_assignment/", ".git/", "03_by_hand/")
FILES = (
    "03_by_hand.ipynb", "03_by_hand (1).ipynb", "03_by_hand-1.ipynb", "08_assignment.ipynb", "train.py", "train-1.py",
    "net.py", "03_byhand.ipynb", "notes.txt", "model.pt", ".DS_Store", "work.rar", "my_assignment",
)  # fmt: skip
FLAT = (
    "lovelaceada_1001_5001_{}", "hopper_LATE_1002_5002_{}", "hopper_1002_5003_{}", "anon_AbC12_5004_{}",
    "Homework_ada_attempt_2026-01-31-23-59-07_{}", "Homework_ada_attempt_2026-01-30-23-59-07_{}",
    "12-35 - Bob - Feb 1, 2026 1205 AM - {}", "{}",
)  # fmt: skip

inner_paths = st.builds(lambda folder, name: folder + name, st.sampled_from(FOLDERS), st.sampled_from(FILES))
inner_archives = st.sets(inner_paths, max_size=4).map(lambda names: ("", tuple(sorted(names))))
in_a_folder = st.builds(lambda who, path: f"{who}/{path}", st.sampled_from(STUDENTS), inner_paths)
flat = st.builds(lambda form, name: form.format(name), st.sampled_from(FLAT), st.sampled_from(FILES))
any_path = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8), max_size=4
).map("/".join)
trees = st.sets(st.one_of(in_a_folder, flat, any_path), min_size=1, max_size=12)


def packed(names: tuple[str, ...]) -> bytes:
    """Return an archive of files that hold their own names."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return content.getvalue()


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Return a course with two released assignments, of which one asks for a program."""
    for name in NAMES:
        folder = tmp_path / "work" / "release" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text('{"grade_id": "four_workers"}' if name == NAMES[1] else "{}")
    (tmp_path / "work" / "nbgrader_config.py").write_text("c = get_config()\n")
    return Course(tmp_path / "work")


@given(tree=trees, archive=st.none() | inner_archives, outer=st.sampled_from(("", "", "download/")))
@settings(max_examples=examples(1000), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_each_file_of_a_random_tree_is_accounted_for(
    course: Course, tree: set[str], archive: tuple[str, tuple[str, ...]] | None, outer: str
):
    contents = {outer + name: name.encode(errors="replace") for name in sorted(tree)}
    expected = list(contents)
    if archive:
        contents[f"{outer}ada/work.zip"] = packed(archive[1])
        expected += [f"{outer}ada/work.zip", *(f"{outer}ada/work.zip/{name}" for name in archive[1])]
    path = course.root / "download.zip"
    with zipfile.ZipFile(path, "w") as written:
        for name, content in contents.items():
            written.writestr(zipfile.ZipInfo(name), content)
        stored = [name for name in contents if not name.endswith("/")]
    download = import_submissions.import_submissions(path, course)
    inner = [name for name in expected if "/work.zip/" in name and name not in contents]
    assert sorted(download.names) == sorted([*stored, *inner]), "each file in is a file accounted for"
    rows = list(csv.DictReader(io.StringIO(account.save(download, course).read_text())))
    assert len(rows) == len(download.names)
    check_rows(course, rows)


def check_rows(course: Course, rows: list[dict[str, str]]) -> None:
    """A graded file lies in the submission, and any other has a reason."""
    for row in rows:
        state = row["what became of it"]
        assert state in (account.GRADED, account.OPENED, account.NOT_GRADED)
        assert bool(row["reason"]) == (state != account.GRADED)
        if state == account.GRADED:
            folder = course.root / "submitted" / row["student"] / row["assignment"]
            name = f"{row['assignment']}.ipynb" if row["file"].endswith(".ipynb") else "my_assignment"
            assert (folder / name).exists()
