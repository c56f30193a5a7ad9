"""Copies the part of the repository that learners get.

They get all that runs. They do not get the solutions, the hidden test cases and the tests.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from grader import exercises
from grader.notebooks import build
from grader.notebooks.build import REPOSITORY

GIVEN = (
    "source_code", "lessons", "grader", "benchmarks", "Makefile", "LICENSE", "pyproject.toml", "requirements.txt",
    "environment.yml",
)  # fmt: skip
README = Path("docs") / "learners.md"  # learners get it in place of the repository's README.md
APPENDIX = ("98_glossary", "99_references")  # notebooks that belong to each choice of lessons
MADE_HERE = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints", "live", "work")


def with_answers() -> list[Path]:
    """Return the files of the exercises that hold a reference, with paths relative to the repository.

    In a learner's copy, `public.json` replaces these files.
    """
    folder = Path("grader") / "exercises" / "definitions"
    compared = [id for id in exercises.ids() if isinstance(exercises.get(id), exercises.Compared)]
    return [folder / exercises.lessons()[id] / f"{id}.py" for id in compared]


def handout(
    target: Path, repository: Path = REPOSITORY, is_chosen: Callable[[str], bool] = lambda lesson: True
) -> None:
    """Copy to `target` what learners get. Of the notebooks they get those that are chosen, by name without ending.

    Raises FileExistsError if `target` exists, and LessonError if a lesson cannot be built.
    """
    target.mkdir(parents=True)
    try:
        _copy(target, repository, is_chosen)
    except BaseException:  # after an interrupt, too: the same command can then start again
        shutil.rmtree(target)
        raise


def _copy(target: Path, repository: Path, is_chosen: Callable[[str], bool]) -> None:
    for name in GIVEN:
        source = repository / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=MADE_HERE)
        else:
            shutil.copy(source, target)
    # The notebooks are built and not copied, because an instructor may have solved exercises in the existing notebooks.
    build.build(repository / "solutions", target / "notebooks")
    for path in (target / "notebooks").glob("*.ipynb"):
        if not is_chosen(path.stem) and path.stem not in APPENDIX:
            path.unlink()
    shutil.copy(repository / README, target / "README.md")
    for path in with_answers():
        (target / path).unlink()
