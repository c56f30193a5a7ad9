"""The set-up's decisions and messages; that it works as a whole is shown by every run of `make` on a bare machine."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SCRIPTS

INSTALL = SCRIPTS / "install" / "install.py"


@pytest.fixture(scope="module")
def install():
    spec = importlib.util.spec_from_file_location("install", INSTALL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_of_the_repository(folder: Path) -> Path:
    for name in ("requirements.txt", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(INSTALL.parent, folder / "source_code" / "install")
    return folder / "source_code" / "install" / "install.py"


def test_missing_system_packages_are_named_in_one_line_with_the_command(tmp_path: Path):
    """A machine without compilers and without apt-get: the path leads nowhere."""
    script = copy_of_the_repository(tmp_path)
    done = subprocess.run([sys.executable, script], env={"PATH": "/nonexistent"}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "missing: g++, make, patch, bubblewrap" in done.stderr
    assert "sudo apt-get install -y --no-install-recommends g++ make patch bubblewrap" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_another_python_is_refused_in_one_line(install, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 13, 1))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11"):
        install.main([])


def test_the_wheel_is_kept_apart_for_other_flags_and_another_patch(install, tmp_path: Path, monkeypatch):
    flags = install.build_flags()
    kept = install.wheel_folder(flags)
    assert kept == install.wheel_folder(flags)
    assert kept != install.wheel_folder(flags | {"HOROVOD_GPU": "CUDA"})
    (tmp_path / "other.patch").write_text("another change")
    monkeypatch.setattr(install, "PATCH", tmp_path / "other.patch")
    assert kept != install.wheel_folder(flags)


def test_the_installed_horovod_is_the_kept_wheel(install):
    wheels = list(install.wheel_folder(install.build_flags()).glob("horovod-0.28.1-*.whl"))
    assert len(wheels) == 1


def test_nothing_to_do_takes_no_time(install, monkeypatch):
    monkeypatch.setattr(install, "dependencies", lambda gpus: pytest.fail("set-up began although it was done"))
    monkeypatch.setattr(install, "course", lambda: pytest.fail("set-up began although it was done"))
    install.main([])


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").touch()
    done = subprocess.run(
        [sys.executable, INSTALL], env=os.environ | {"COURSE_ENV": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "COURSE_ENV must name" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_environment_that_cannot_be_made_is_said_in_a_line(tmp_path: Path):
    (tmp_path / "file").touch()
    env = os.environ | {"COURSE_ENV": str(tmp_path / "file" / "env")}
    done = subprocess.run([sys.executable, INSTALL], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "install.py" not in done.stderr, "no traceback of ours"
    assert done.stderr.splitlines()[-1] == f"install: no environment could be made in {env['COURSE_ENV']} (see above)"


def test_an_interrupt_ends_with_the_command_that_goes_on(tmp_path: Path):
    """Interrupted as on Ctrl-C, which its children get as well, while it makes the environment."""
    process = subprocess.Popen(
        [sys.executable, INSTALL], env=os.environ | {"COURSE_ENV": str(tmp_path / "env")}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert "making a virtual environment" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.splitlines()[-1].startswith("install: interrupted. To go on: "), said


@pytest.mark.parametrize(("gpus", "operation"), [(0, ""), (1, "ALLGATHER"), (3, "ALLGATHER"), (4, "OPERATIONS")])
def test_nccl_exchanges_gradients_where_each_worker_has_a_gpu(gpus: int, operation: str, install, monkeypatch):
    monkeypatch.setattr(install.subprocess, "check_output", lambda *a, **k: json.dumps(["13.0", gpus]))
    monkeypatch.setattr(install.shutil, "which", lambda program: f"/usr/bin/{program}")
    flags = install.build_flags()
    assert [name for name, value in flags.items() if value == "NCCL"] == (
        [f"HOROVOD_GPU_{operation}"] if operation else []
    )


def test_an_environment_that_is_not_ours_is_not_removed(install, tmp_path: Path, monkeypatch):
    """One that uv made, without pip: it is stopped at, whatever is in it."""
    (tmp_path / "pyvenv.cfg").touch()
    monkeypatch.setattr(install, "VENV", tmp_path)
    monkeypatch.setattr(install, "PYTHON", tmp_path / "bin" / "python")
    monkeypatch.setattr(install, "STAMP", tmp_path / "course-installed.json")
    with pytest.raises(SystemExit, match="has no Python with pip"):
        install.virtual_environment()
    assert (tmp_path / "pyvenv.cfg").exists()
