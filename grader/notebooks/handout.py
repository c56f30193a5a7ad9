"""What a learner's machine gets of this repository: all that runs, no solutions, no hidden test cases, no tests."""

import shutil
from pathlib import Path

from grader import exercises
from grader.notebooks import build
from grader.notebooks.build import REPOSITORY

GIVEN = (
    "source_code", "lessons", "grader", "benchmarks", "Makefile", "LICENSE", "pyproject.toml", "requirements.txt",
    "environment.yml",
)  # fmt: skip
README = Path("docs") / "learners.md"  # in the place of the repository's
MADE_HERE = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints", "live", "work")


def with_answers() -> list[Path]:
    """The files of exercises that hold a reference, as the repository names them; `public.json` answers for them."""
    folder = Path("grader") / "exercises" / "definitions"
    compared = [id for id in exercises.IDS if isinstance(exercises.get(id), exercises.Compared)]
    return [folder / exercises.LESSONS[id] / f"{id}.py" for id in compared]


def handout(target: Path, repository: Path = REPOSITORY) -> None:
    """Copy to `target` what learners get. Raises FileExistsError if it is there, LessonError if none can be built."""
    target.mkdir(parents=True)
    for name in GIVEN:
        source = repository / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=MADE_HERE)
        else:
            shutil.copy(source, target)
    # Built anew, not copied: an instructor may have solved exercises in the repository's own.
    build.build(repository / "solutions", target / "notebooks")
    shutil.copy(repository / README, target / "README.md")
    for path in with_answers():
        (target / path).unlink()
