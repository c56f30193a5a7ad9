"""nbgrader's collect from an exchange in which everybody can write: real nbgrader, hostile neighbours."""

import getpass
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cifar.support.horovodrun import programs_path
from grader.classroom.course import CONFIG, Course
from grader.classroom.publishing import release

NAME = "06_techniques"
ME = getpass.getuser()  # the one student who has an account here
EARLY, LATE = "2026-01-02 03:04:05.000006 UTC", "2026-01-03 03:04:05.000006 UTC"


@pytest.fixture
def inbound(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "exchange" / "distributed-deep-learning" / "inbound"
    folder.mkdir(parents=True)
    for path in (tmp_path / "work" / "exchange", *folder.parents[:1], folder):
        path.chmod(0o777)
    shutil.copy(Path(release.__file__).with_name(CONFIG), tmp_path / "work")
    return folder


def handed_in(inbound: Path, student: str, stamp: str = EARLY, text: str = "{}") -> Path:
    folder = inbound / f"{student}+{NAME}+{stamp}+x"
    folder.mkdir()
    (folder / f"{NAME}.ipynb").write_text(text)
    (folder / "timestamp.txt").write_text(stamp)
    return folder


def collect(inbound: Path, *options: str) -> tuple[Course, str]:
    """The course after `nbgrader collect`, and what was said."""
    root = inbound.parents[2]
    line = [Path(sys.executable).with_name("nbgrader"), "collect", NAME, *options]
    environment = os.environ | {"PATH": programs_path()}  # as in an activated environment: nbgrader calls alembic
    done = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Course(root), done.stderr


def test_links_pipes_and_files_of_others_stay_where_they_are(inbound: Path, tmp_path: Path):
    (tmp_path / "solved").write_text("the answers")
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "train.py").write_text("hers")
    folder = handed_in(inbound, ME)
    (folder / f"{NAME}.ipynb").unlink()
    (folder / f"{NAME}.ipynb").symlink_to(tmp_path / "solved")
    (folder / "my_assignment").symlink_to(tmp_path / "ada")
    (folder / "more").mkdir()
    (folder / "more" / "own.py").write_text("mine")
    os.mkfifo(folder / "more" / "pipe")
    if os.getuid() == 0:
        (folder / "more" / "others.py").write_text("not mine")
        os.chown(folder / "more" / "others.py", 12345, 12345)
    course, said = collect(inbound)
    found = course.folder("submitted", ME, NAME)
    files = sorted(str(path.relative_to(found)) for path in found.rglob("*") if path.is_file())
    assert files == ["more/own.py", "timestamp.txt"] and not any(path.is_symlink() for path in found.rglob("*"))
    assert said.count("left out of") == (4 if os.getuid() == 0 else 3)


def test_nobody_hands_in_for_another_and_no_name_ends_the_collection(inbound: Path, tmp_path: Path):
    handed_in(inbound, ME, text="mine")
    handed_in(inbound, "ada", LATE)
    handed_in(inbound, "..", LATE)
    handed_in(inbound, "eve", "no time at all")
    (inbound / f"bob+{NAME}+{EARLY}+x").symlink_to(tmp_path)
    if os.getuid() == 0:
        forged = handed_in(inbound, ME, LATE, text="in my name")
        for path in (forged, *forged.iterdir()):
            os.chown(path, 12345, 12345)
    course, said = collect(inbound)
    assert [path.name for path in (course.root / "submitted").iterdir() if (path / NAME).exists()] == [ME]
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "mine"
    assert (
        f"it belongs to {ME}, not to ada" in said and said.count("not collected") == 3
    )  # nbgrader sees no name that begins with a dot


def test_no_name_and_no_depth_ends_the_collection(inbound: Path):
    handed_in(inbound, ME, text="mine")
    for name in (f"+{NAME}+{EARLY}+x", f"z+{NAME}+nonsense+x"):  # no name, and a time that is none: both "nobody's"
        (inbound / name).mkdir()
    deep = handed_in(inbound, ME, LATE)
    for _ in range(60):
        deep = deep / "a"
    deep.mkdir(parents=True)
    course, said = collect(inbound)
    assert f"+{NAME}" in said and "deep" in said
    shutil.rmtree(next(inbound.glob(f"{ME}+{NAME}+{LATE}*")))
    course, _ = collect(inbound)
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "mine"


def test_what_is_handed_in_later_takes_the_place_of_what_was_collected(inbound: Path):
    handed_in(inbound, ME, text="first")
    collect(inbound)
    handed_in(inbound, ME, LATE, text="second")
    course, _ = collect(inbound)
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "second"
    course, _ = collect(inbound)
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "second"


def test_where_ids_are_no_accounts_all_are_collected(inbound: Path):
    handed_in(inbound, "ada")
    course, said = collect(inbound, "--ExchangeCollect.check_owner=False")
    assert (course.folder("submitted", "ada", NAME) / f"{NAME}.ipynb").exists() and "not collected" not in said
