"""Commands before the first release, when there is no course yet."""

from pathlib import Path

import pytest

from grader.__main__ import main


@pytest.mark.parametrize("command", ["autograde", "feedback", "export", "certify"])
def test_before_the_first_release_one_line_names_the_command(command: str, tmp_path: Path, capsys):
    assert main([command, "--course", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"grader: {tmp_path} is no course folder yet: make release COURSE={tmp_path}\n"
    assert not list(tmp_path.iterdir())
