"""Bulk downloads of Canvas, Blackboard and Brightspace are taken in, and of several attempts the last counts."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.classroom.collecting import import_submissions, platforms, student_submission
from grader.classroom.course import Course
from tests.support.files import as_folder, as_zip

ONE, TWO = "03_data_parallelism_by_hand", "06_techniques"
NAMES = {f"{ONE}.ipynb", f"{TWO}.ipynb", "train.py"}


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Return a course with two released assignments. It has as much of a course as the import needs."""
    for name in (ONE, TWO):
        (tmp_path / "work" / "release" / name).mkdir(parents=True)
    return Course(tmp_path / "work")


def taken_in(course: Course, tmp_path: Path, files: dict[str, bytes], pack=as_zip) -> tuple[dict, list[str]]:
    """Return the notebooks that were taken in, by student and assignment, and the files that were not."""
    _, ignored = import_submissions.import_submissions(pack(tmp_path / "download", files), course)
    found = student_submission.find_submissions(course)
    return {one: student_submission.read_submission(course, *one).notebook for one in found}, ignored


@pytest.mark.parametrize("pack", [as_folder, as_zip])
@pytest.mark.parametrize("outer", ["", "submissions/"])
def test_canvas(course: Course, tmp_path: Path, outer: str, pack):
    files = {
        f"{outer}lovelaceada_1001_500001_{ONE}.ipynb": b"ada",
        f"{outer}hoppergrace_LATE_1002_500002_{ONE}-1.ipynb": b"grace",
        f"{outer}hoppergrace_1003_500003_{ONE}.ipynb": b"another grace",
        f"{outer}lovelaceada_1001_500004_{TWO} (2).ipynb": b"ada 6",
        f"{outer}lovelaceada_1001_500005_photo.png": b"no work",
    }
    found, ignored = taken_in(course, tmp_path, files, pack)
    assert found == {
        ("lovelaceada-1001", ONE): b"ada", ("hoppergrace-1002", ONE): b"grace",
        ("hoppergrace-1003", ONE): b"another grace", ("lovelaceada-1001", TWO): b"ada 6",
    }  # fmt: skip
    assert not ignored


def test_blackboard_has_all_attempts_and_the_last_counts(course: Course, tmp_path: Path):
    start = "Homework 3 (made_up)_alovelace_attempt_2026-01-31"
    files = {
        f"{start}-23-59-07_{ONE}.ipynb": b"second",
        f"{start}-08-00-00_{ONE}.ipynb": b"first",
        f"{start}-23-59-07.txt": b"Blackboard's own note",
        f"Homework 3 (made_up)_ghopper_attempt_2026-02-01-00-00-00_{ONE}.ipynb": b"grace",
    }
    found, ignored = taken_in(course, tmp_path, files)
    assert found == {("alovelace", ONE): b"second", ("ghopper", ONE): b"grace"}
    assert ignored == [f"{start}-08-00-00_{ONE}.ipynb (an earlier attempt)"]


def test_brightspace_has_a_folder_for_each_attempt(course: Course, tmp_path: Path):
    files = {
        f"1234-5678 - Ada Lovelace - Jan 31, 2026 1159 PM/{ONE}.ipynb": b"late",
        f"1234-5678 - Ada Lovelace - Jan 31, 2026 902 AM/{ONE}.ipynb": b"early",
        f"1235-5678 - Zoë Made-Up - February 1, 2026 1205 AM/{ONE} (1).ipynb": b"zoe",
        f"1236-5678 - 23304308 Hopper - 05 March 2026 612 PM/{ONE}.ipynb": b"new",
        f"1236-5678 - 23304308 Hopper - 28 February 2026 912 PM/{ONE}.ipynb": b"old",
        "index.html": b"Brightspace's own page",
    }
    found, ignored = taken_in(course, tmp_path, files)
    assert found == {("Ada-Lovelace", ONE): b"late", ("Zoe-Made-Up", ONE): b"zoe", ("23304308-Hopper", ONE): b"new"}
    assert (
        ignored[0] == (f"1234-5678 - Ada Lovelace - Jan 31, 2026 902 AM/{ONE}.ipynb (an earlier attempt)")
        and len(ignored) == 2
    )


def test_a_clone_of_a_classroom_keeps_its_form(course: Course, tmp_path: Path):
    files = {f"homework-3-ada/{ONE}.ipynb": b"ada", "homework-3-ada/.git/config": b"", "homework-3-ada/README.md": b""}
    assert taken_in(course, tmp_path, files) == ({("homework-3-ada", ONE): b"ada"}, [])


def test_paths_in_no_platforms_form_are_left_alone():
    paths = [PurePosixPath(f"ada/{ONE}.ipynb"), PurePosixPath("a_b/c"), PurePosixPath("x/y/1_2_3_4.ipynb")]
    assert platforms.arrange(paths, NAMES) == {}


@given(st.lists(st.text(min_size=1, max_size=40).filter(lambda text: "/" not in text and "\0" not in text), max_size=8))
def test_any_name_has_one_place_or_none(names: list[str]):
    paths = [PurePosixPath(name) for name in names if name not in (".", "..")]
    places = [place for place in platforms.arrange(paths, NAMES).values() if place]
    assert len(places) == len(set(places)) and all(len(place.parts) == 2 for place in places)
