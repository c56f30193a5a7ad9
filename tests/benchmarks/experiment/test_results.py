"""A result says which commit and which machine it comes from."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.experiment import results


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a git repository with one program and one committed result. It replaces ours in the test."""
    (tmp_path / "results").mkdir()
    (tmp_path / "program.py").write_text("print(1)\n")
    (tmp_path / "results" / "a-0.json").write_text("{}\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "--quiet", "-m", "first")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_result_names_the_commit_it_was_measured_at(repository: Path):
    assert results.machine()["commit"] == git(repository, "rev-parse", "--short=12", "HEAD")


def test_results_that_are_measured_again_do_not_make_the_commit_dirty(repository: Path):
    (repository / "results" / "a-0.json").unlink()
    (repository / "results" / "a-1.json").write_text("{}\n")
    assert not results.machine()["commit"].endswith("-dirty")


@pytest.mark.parametrize("name", ["program.py", "new.py"])
def test_a_changed_or_a_new_program_makes_the_commit_dirty(repository: Path, name: str):
    (repository / name).write_text("print(2)\n")
    assert results.machine()["commit"] == git(repository, "rev-parse", "--short=12", "HEAD") + "-dirty"


def test_the_commit_of_carried_files_comes_before_that_of_a_repository_around_them(repository: Path, monkeypatch):
    monkeypatch.setenv("COURSE_COMMIT", "0123456789ab")
    (repository / "program.py").write_text("print(3)\n")
    assert results.machine()["commit"] == "0123456789ab"


def test_a_copy_that_is_no_repository_has_an_unknown_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert results.machine()["commit"] == "unknown"
