"""A learner's copy of the course has no answers, and exercises are checked there all the same."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grader import exercises
from grader.__main__ import main
from grader.notebooks import build, handout

ASKS = """
import grader
from grader.exercises.public_check import check_public

print(grader.__file__)


def updates_made(images, batch, workers, epochs):
    return epochs * -(-(images // workers) // batch)


check_public("updates_made", updates_made)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("learner") / "course"
    handout.handout(target)
    return target


def test_it_has_no_solutions_no_tests_and_no_reference_of_an_exercise(copy: Path):
    assert not {"solutions", "tests", ".git", ".ci"} & {path.name for path in copy.iterdir()}
    left = {path.stem for path in (copy / "grader" / "exercises" / "definitions").rglob("*.py")}
    assert left & set(exercises.ids()) == {"shard_indices"}, "the one exercise that holds no answer"
    assert not [path for path in copy.rglob("*.ipynb") if "BEGIN SOLUTION" in path.read_text()]
    assert not [path for path in copy.rglob("*") if path.name in ("__pycache__", "work", "live")]


def test_its_notebooks_are_built_anew_and_not_those_in_which_an_instructor_has_typed(copy: Path):
    assert {path.name: path.read_text() for path in (copy / "notebooks").iterdir()} == build.built(build.SOLUTIONS)


def test_its_readme_names_only_what_is_there(copy: Path):
    readme, makefile = (copy / "README.md").read_text(), (copy / "Makefile").read_text()
    needs = dict(re.findall(r"^([a-z-]+):([^#\n]*)", makefile, flags=re.MULTILINE))
    for target in re.findall(r"\bmake ([a-z]+)", readme):
        assert target not in needs or "whole" not in needs[target].split(), target
        assert target in needs or f"`make {target}" not in readme, target
    for path in re.findall(r"`((?:source_code|notebooks|docs)/[^`]*/?)`", readme):
        assert (copy / path).exists() or path == "notebooks/my_assignment/", path
    assert not re.search(r"\]\((?!http)", readme), "a link to a file"


def test_what_needs_the_whole_repository_says_so_there(copy: Path):
    done = subprocess.run(["make", "course"], cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "learner's copy" in done.stderr and "Traceback" not in done.stderr


def test_an_exercise_is_checked_there_without_its_reference(copy: Path):
    packages = os.pathsep.join([str(copy / "source_code"), str(copy)])
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": packages},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(copy)) and "3 of 3 points" in done.stdout


def test_the_command_overwrites_nothing(tmp_path: Path, capsys):
    assert main(["handout", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"grader: {tmp_path} is there already; name a new folder\n"
    assert main(["handout", str(tmp_path / "new")]) == 0 and (tmp_path / "new" / "notebooks").is_dir()
