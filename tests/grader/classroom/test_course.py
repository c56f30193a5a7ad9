"""Before the first release there is no course yet, and commands say so."""

from pathlib import Path

import pytest

from grader.__main__ import main
from grader.classroom.course import CONFIG, Course


@pytest.mark.parametrize("command", ["autograde", "feedback", "export", "certify"])
def test_before_the_first_release_one_line_names_the_command(command: str, tmp_path: Path, capsys):
    assert main([command, "--course", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"grader: {tmp_path} is no course folder yet: make release COURSE={tmp_path}\n"
    assert not list(tmp_path.iterdir())


def test_a_course_without_its_key_is_not_graded(tmp_path: Path, capsys):
    (tmp_path / CONFIG).touch()
    assert main(["autograde", "--course", str(tmp_path)]) == 2
    message = f"{tmp_path / 'key'} is missing: make release COURSE={tmp_path} creates a new one"
    assert capsys.readouterr().err == f"grader: {message}\n"
    Course(tmp_path).create_key()
    key = Course(tmp_path).key
    Course(tmp_path).create_key()
    assert Course(tmp_path).key == key
    assert len(key) == 32
