"""`make lab` prints messages before JupyterLab starts: about a used port, a missing browser or a remote machine.

The tests with a browser start the real server.
"""

import socket
from pathlib import Path

import pytest
from traitlets.config import Config

from lessons import lab
from tests.conftest import REPOSITORY


@pytest.fixture
def taken() -> int:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def hints(monkeypatch: pytest.MonkeyPatch, *arguments: str, shown: bool = False, **environment: str) -> str:
    for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return lab._hints("http://localhost:8888/lab?token=x", lab._parse([*arguments]), shown)


def test_a_taken_port_is_said_with_another_one_to_try(taken: int, capsys):
    assert lab.main(["--port", str(taken)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"make lab PORT={taken + 1}" in said


def test_what_is_no_port_or_not_ours_to_listen_at_is_said_in_a_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        lab.main(["--port", "88888"])
    assert "88888 is no port" in capsys.readouterr().err
    assert lab.main(["--address", "192.0.2.1"]) == 2  # No machine has this address (RFC 5737).
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot listen at 192.0.2.1" in said and "taken" not in said


def test_a_home_that_cannot_be_written_is_said_in_a_line(tmp_path: Path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    assert "JUPYTER_RUNTIME_DIR" in lab._home_problem() and str(tmp_path) in lab._home_problem()


def test_an_instructor_without_a_course_is_told_to_make_one(tmp_path: Path, capsys):
    assert lab.main(["--course", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"lab: {tmp_path} is no course folder yet: make release COURSE={tmp_path}\n"


def test_without_a_browser_the_address_is_to_be_opened(monkeypatch):
    said = hints(monkeypatch)
    assert said.startswith("lab: http://localhost:8888/lab?token=x\n") and "open the address above" in said
    assert not lab._has_browser()
    assert "open" not in hints(monkeypatch, shown=True)


def test_a_remote_machine_is_reached_through_ssh(monkeypatch):
    said = hints(monkeypatch, "--port", "8899", SSH_CONNECTION="10.0.0.1 1 10.0.0.2 22", DISPLAY=":0")
    assert "ssh -N -L 8899:localhost:8899" in said
    assert not lab._has_browser()


def test_in_a_container_the_name_of_the_machine_is_to_be_put_in(monkeypatch):
    assert "in place of localhost" in hints(monkeypatch, "--address", "0.0.0.0")


def test_the_token_is_in_no_list_of_processes(tmp_path: Path):
    args = lab._parse([])
    assert "JUPYTER_TOKEN" in lab._environment("secret", "learner")
    assert not [word for word in lab._command(args, tmp_path, "lab", False) if "secret" in word]


def test_jupyterlab_opens_the_folder_that_holds_the_lessons():
    assert (lab.NOTEBOOKS / "00_start_here.ipynb").is_file()


def test_a_learner_fetches_assignments_from_the_exchange_in_this_copy_of_the_course(monkeypatch):
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    source = Path(lab.__file__).parent / "jupyter" / "learner" / "nbgrader_config.py"
    config = Config()
    exec(source.read_text(), {"__file__": str(source), "get_config": lambda: config})
    assert Path(config.Exchange.root).parents[2] == REPOSITORY
