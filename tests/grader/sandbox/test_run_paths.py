"""A check has its folders, and some files are removed from them before the next check."""

from pathlib import Path

from grader.sandbox.run_paths import RunPaths
from tests.support.files import source_folder


def test_clearing_removes_only_files_of_an_earlier_check(tmp_path: Path):
    folders = RunPaths(tmp_path / "out")
    folders.clear()
    source_folder(folders.root, {"keep.txt": "mine", "output/model.pt": "", "report.json": "{}"})
    folders.clear()
    assert sorted(path.name for path in folders.root.iterdir()) == [".grader", "keep.txt"]
