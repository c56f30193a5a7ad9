"""The real nbgrader collects submissions from an exchange in which every user can write."""

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
ME = getpass.getuser()  # Only this student has an account on this machine.
EARLY, LATE = "2026-01-02 03:04:05.000006 UTC", "2026-01-03 03:04:05.000006 UTC"


@pytest.fixture
def inbound(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "exchange" / "distributed-deep-learning" / "inbound"
    folder.mkdir(parents=True)
    for path in (tmp_path / "work" / "exchange", *folder.parents[:1], folder):
        path.chmod(0o777)
    shutil.copy(Path(release.__file__).with_name(CONFIG), tmp_path / "work")
    return folder


def submit(inbound: Path, student: str, stamp: str = EARLY, text: str = "{}") -> Path:
    folder = inbound / f"{student}+{NAME}+{stamp}+x"
    folder.mkdir()
    (folder / f"{NAME}.ipynb").write_text(text)
    (folder / "timestamp.txt").write_text(stamp)
    return folder


def collect(inbound: Path, *options: str) -> tuple[Course, str]:
    """Run `nbgrader collect`, and return the course and the log."""
    root = inbound.parents[2]
    line = [Path(sys.executable).with_name("nbgrader"), "collect", NAME, *options]
    # nbgrader calls alembic, which must be on the path as in an activated environment.
    environment = os.environ | {"PATH": programs_path()}
    done = subprocess.run(line, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Course(root), done.stderr


def test_links_pipes_and_files_of_other_users_are_not_collected(inbound: Path, tmp_path: Path):
    (tmp_path / "solved").write_text("the answers")
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "train.py").write_text("hers")
    folder = submit(inbound, ME)
    (folder / f"{NAME}.ipynb").unlink()
    (folder / f"{NAME}.ipynb").symlink_to(tmp_path / "solved")
    (folder / "my_assignment").symlink_to(tmp_path / "ada")
    (folder / "more").mkdir()
    (folder / "more" / "own.py").write_text("mine")
    os.mkfifo(folder / "more" / "pipe")
    if os.getuid() == 0:
        (folder / "more" / "others.py").write_text("not mine")
        os.chown(folder / "more" / "others.py", 12345, 12345)
    course, log = collect(inbound)
    collected = course.folder("submitted", ME, NAME)
    files = sorted(str(path.relative_to(collected)) for path in collected.rglob("*") if path.is_file())
    assert files == ["more/own.py", "timestamp.txt"]
    assert not any(path.is_symlink() for path in collected.rglob("*"))
    assert log.count("left out of") == (4 if os.getuid() == 0 else 3)


def test_nobody_can_submit_in_the_name_of_another(inbound: Path, tmp_path: Path):
    submit(inbound, ME, text="mine")
    submit(inbound, "ada", LATE)
    submit(inbound, "..", LATE)
    submit(inbound, "eve", "no time at all")
    (inbound / f"bob+{NAME}+{EARLY}+x").symlink_to(tmp_path)
    if os.getuid() == 0:
        forged = submit(inbound, ME, LATE, text="in my name")
        for path in (forged, *forged.iterdir()):
            os.chown(path, 12345, 12345)
    course, log = collect(inbound)
    assert [path.name for path in (course.root / "submitted").iterdir() if (path / NAME).exists()] == [ME]
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "mine"
    assert f"it belongs to {ME}, not to ada" in log
    assert log.count("not collected") == 3  # nbgrader itself ignores a name that begins with a dot.


def test_neither_a_name_nor_deep_folders_stop_the_collection(inbound: Path):
    submit(inbound, ME, text="mine")
    # One folder has no name, and the other one has an invalid time. So they belong to nobody.
    for name in (f"+{NAME}+{EARLY}+x", f"z+{NAME}+nonsense+x"):
        (inbound / name).mkdir()
    deep = submit(inbound, ME, LATE)
    for _ in range(60):
        deep = deep / "a"
    deep.mkdir(parents=True)
    course, log = collect(inbound)
    assert f"+{NAME}" in log
    assert "deep" in log
    shutil.rmtree(next(inbound.glob(f"{ME}+{NAME}+{LATE}*")))
    course, _ = collect(inbound)
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "mine"


def test_a_later_submission_replaces_the_collected_one(inbound: Path):
    submit(inbound, ME, text="first")
    collect(inbound)
    submit(inbound, ME, LATE, text="second")
    course, _ = collect(inbound)
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "second"
    course, _ = collect(inbound)
    assert (course.folder("submitted", ME, NAME) / f"{NAME}.ipynb").read_text() == "second"


def test_without_accounts_all_submissions_are_collected(inbound: Path):
    submit(inbound, "ada")
    course, log = collect(inbound, "--ExchangeCollect.check_owner=False")
    assert (course.folder("submitted", "ada", NAME) / f"{NAME}.ipynb").exists()
    assert "not collected" not in log
