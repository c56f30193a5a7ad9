"""The lesson in docs/own_course.md is built as it stands there, released, and graded with right and wrong answers."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from grader.classroom import policy
from grader.classroom.course import Course
from grader.classroom.grading import record
from grader.classroom.publishing.release import graded_notebook
from grader.notebooks.build import SOLUTIONS, lessons

REPOSITORY = Path(__file__).resolve().parents[3]
DOC = (REPOSITORY / "docs" / "own_course.md").read_text()
pytestmark = pytest.mark.slow
LESSON, ID = "21_accumulation", "images_per_update"
ANSWERS = {"right": "return batch * workers * steps", "wrong": "return batch * workers"}


def blocks(language: str) -> list[str]:
    """Return the blocks of code of a language in the document."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def run(clone: Path, *command: str) -> str:
    """Run a command of the document in the copy. Return what it printed."""
    line = [sys.executable if command[0] == "python" else command[0], *command[1:]]
    done = subprocess.run(line, cwd=clone, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository in which the document's files are written and its commands were run."""
    clone = tmp_path_factory.mktemp("own") / "clone"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in filter(None, tracked.stdout.split("\0")):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, clone / name)
    for text in blocks("python"):
        first, _, content = text.partition("\n")
        path = clone / first.removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    course = clone / "grader" / "work"
    course.mkdir()
    (course / policy.FILE).write_text('lessons = ["21"]')
    for command in blocks("")[0].splitlines():
        run(clone, *command.split())
    return clone


def test_the_lesson_is_an_assignment_without_its_solution(clone: Path):
    course = Course(clone / "grader" / "work")
    assert course.assignments == [LESSON]
    released = course.folder("release", ".", LESSON) / f"{LESSON}.ipynb"
    for path in (released, clone / "notebooks" / f"{LESSON}.ipynb"):
        text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        assert "Return how many images this update sees" in text
        assert ">>> images_per_update(4, 2, 3)\n24" in text, "the example is computed"
        assert "batch * workers * steps" not in text


def test_a_right_and_a_wrong_answer_get_what_they_earn(clone: Path):
    course = Course(clone / "grader" / "work")
    released = course.folder("release", ".", LESSON) / f"{LESSON}.ipynb"
    for student, answer in ANSWERS.items():
        notebook = nbformat.read(released, as_version=4)
        cell = next(one for one in notebook.cells if one.id == ID)
        cell.source = f"def images_per_update(batch, workers, steps):\n    {answer}\n"
        folder = course.folder("submitted", student, LESSON)
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / released.name)
    run(clone, "python", "-m", "grader", "autograde", "--course", "grader/work")
    right, wrong = (record.load(course.record(student, LESSON)) for student in ANSWERS)
    assert (right.points, wrong.points) == (3, 0)
    assert "You count one batch of each worker. Each of them adds up several batches." in wrong.lines[0].message


def test_learners_get_the_lesson_and_its_public_test_cases_and_no_answer(clone: Path):
    run(clone, "python", "-m", "grader", "handout", "learner", "--course", "grader/work")
    learner = clone / "learner"
    assert (learner / "notebooks" / f"{LESSON}.ipynb").is_file()
    assert f'"{ID}"' in (learner / "grader" / "exercises" / "public.json").read_text()
    assert not list(learner.rglob(f"{ID}.py"))


def test_the_policy_of_the_document_is_valid(tmp_path: Path):
    (tmp_path / policy.FILE).write_text("\n".join(blocks("toml")))
    names = ["03_data_parallelism_by_hand", "08_assignment"]
    assert policy.load(tmp_path, names).assignment("08_assignment").weight == 0.5


def test_the_document_has_the_names_of_all_assignments():
    graded = {path.stem for path in lessons(SOLUTIONS) if graded_notebook(path)}
    assert set(re.findall(r"`(\d\d_\w+)`", DOC)) == graded


def test_the_points_that_a_platform_needs_are_those_of_the_assignments():
    text = (REPOSITORY / "docs" / "hand_ins.md").read_text()
    told = {name: int(points) for name, points in re.findall(r"^\| `(\d\d_\w+)` \| (\d+) \|$", text, re.MULTILINE)}
    notebooks = {path.stem: graded_notebook(path) for path in lessons(SOLUTIONS)}
    points = {
        name: sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in notebook.cells)
        for name, notebook in notebooks.items()
        if notebook
    }
    assert told == points
