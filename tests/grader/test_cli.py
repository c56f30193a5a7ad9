"""The grader's command line answers before a run starts."""

from pathlib import Path

import pytest

from grader.__main__ import main
from grader.sandbox.run_paths import RunPaths
from tests.conftest import run_python
from tests.support.files import source_folder


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"main.py": ""}, "has no train.py"),
        ({"train.py": "", "data.txt": "x" * 65_537}, "more than 65,536 bytes of source"),
    ],
)
def test_a_submission_that_cannot_be_launched_gives_one_line_and_exit_status_2(
    files: dict[str, str], message: str, tmp_path: Path, capsys
):
    status = main(["check", str(source_folder(tmp_path / "in", files)), "--output", str(tmp_path / "out")])
    message_on_screen = capsys.readouterr().err
    assert status == 2
    assert message_on_screen.count("\n") == 1
    assert message in message_on_screen


def test_a_check_removes_no_files_of_the_user(tmp_path: Path, capsys):
    source_folder(tmp_path / "mine", {"train.py": "", "data/all.csv": "1"})
    assert main(["check", str(tmp_path / "mine"), "--output", str(tmp_path / "mine")]) == 2
    assert "data is there, and no check has left it; name another folder" in capsys.readouterr().err
    RunPaths(tmp_path / "out").clear()
    source_folder(tmp_path / "out" / "source", {"train.py": ""})
    assert main(["check", str(tmp_path / "out" / "source"), "--output", str(tmp_path / "out")]) == 2
    assert "a copy that this check would replace" in capsys.readouterr().err
    assert (tmp_path / "mine" / "data" / "all.csv").exists()
    assert (tmp_path / "out" / "source" / "train.py").exists()


def test_a_wrong_option_gives_one_line_and_exit_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["check", "somewhere", "--profile", "huge"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("grader check: argument --profile: invalid choice: 'huge'")


def test_the_command_line_and_certificates_need_no_slow_imports():
    names = "grader.__main__, grader.certificates.credential, cifar.download, sys"
    done = run_python("-c", f"import {names}; print({{'torch', 'matplotlib', 'nbgrader'}} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr
