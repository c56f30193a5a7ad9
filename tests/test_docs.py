"""The texts in Markdown name only files and commands that exist."""

import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

TEXTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    *(f"docs/{path.name}" for path in sorted((REPOSITORY / "docs").glob("*.md"))),
]
MAX_CHARACTERS = 120  # A line in these texts has at most as many characters as a line of code.
WRITTEN_LATER = ("grader/work", "runs", "notebooks/my_assignment")  # Commands write these, and git ignores them.
PARTS = ("source_code", "lessons", "grader", "benchmarks", "solutions", "notebooks", "docs", "tests", "runs")


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return (REPOSITORY / request.param).read_text()


def test_each_path_that_is_named_exists(text: str):
    for path in re.findall(rf"`((?:{'|'.join(PARTS)})/[\w./-]*)`", text):
        exists = list(REPOSITORY.glob(path.replace("NN_name", "[0-9][0-9]_*")))
        assert exists or path.startswith(WRITTEN_LATER), path


def test_each_target_of_make_that_is_named_exists(text: str):
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|^|; )make ([a-z-]+)", text, flags=re.MULTILINE))
    assert named <= targets


def test_no_line_is_too_long(text: str):
    assert not [line for line in text.splitlines() if len(line) > MAX_CHARACTERS]


def test_each_place_for_a_change_exists_and_holds_the_name_that_is_given():
    """A row of the table has for instance the file `grader/run/watchdog.py` and the name `START_SECONDS`."""
    table = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("## Where do I change")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ") and "`" in line.split("|")[2]]
    assert len(rows) > 20
    for row in rows:
        path, *names = re.findall(r"`([^`]+)`", row)
        assert (REPOSITORY / path).exists(), path
        assert all(re.search(rf"\b{name}\b", (REPOSITORY / path).read_text()) for name in names), row


def test_a_folder_of_the_table_exists_or_is_written_by_a_command():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    table = text.partition("## Where things are")[2].partition("\n## ")[0]
    folders = re.findall(r"^\| `([^`]+)/` \|", table, flags=re.MULTILINE)
    assert {Path(folder).parts[0] for folder in folders} == set(PARTS)
    for folder in folders:
        assert folder.startswith(WRITTEN_LATER) or (REPOSITORY / folder).is_dir(), folder
