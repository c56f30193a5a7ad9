"""The set-up makes the right decisions and prints the right messages.

Every run of `make` on a bare machine shows that the set-up works as a whole.
"""

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


def copy_of_the_repository(folder: Path) -> Path:
    for name in ("requirements.txt", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder)
    shutil.copytree(INSTALL.parent, folder / "source_code" / "install")
    return folder / "source_code" / "install" / "install.py"


def test_missing_system_packages_are_named_in_one_line_with_the_command(tmp_path: Path):
    """The path leads nowhere, so this machine has no compilers and no apt-get."""
    script = copy_of_the_repository(tmp_path)
    done = subprocess.run([sys.executable, script], env={"PATH": "/nonexistent"}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "missing: g++, make, patch, bubblewrap" in done.stderr
    assert "sudo apt-get install -y --no-install-recommends g++ make patch bubblewrap" in done.stderr
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_another_python_is_refused_in_one_line(version: tuple, install, monkeypatch):
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match=r"needs Python 3\.11, 3\.12 or 3\.13, this is"):
        install.main([])


def test_set_up_make_and_the_package_support_the_same_pythons(install):
    makefile, project = (REPOSITORY / "Makefile").read_text(), (REPOSITORY / "pyproject.toml").read_text()
    newest_first = " ".join(f"python{version}" for version in reversed(install.PYTHONS))
    assert f"PYTHONS := {newest_first} python3\n" in makefile
    oldest, newest = install.PYTHONS[0], install.PYTHONS[-1]
    after = f"3.{int(newest.partition('.')[2]) + 1}"
    assert f'requires-python = ">={oldest},<{after}"' in project


def test_the_wheel_is_kept_apart_for_other_flags_and_another_patch(install, tmp_path: Path, monkeypatch):
    flags = install.builds()[0]
    kept = install.wheel_folder(flags)
    assert kept == install.wheel_folder(flags)
    assert kept != install.wheel_folder(flags | {"HOROVOD_GPU": "CUDA"})
    assert kept != install.wheel_folder(install.builds(mpi=True)[0])
    (tmp_path / "other.patch").write_text("another change")
    monkeypatch.setattr(install, "PATCH", tmp_path / "other.patch")
    assert kept != install.wheel_folder(flags)


def test_the_installed_horovod_is_the_kept_wheel(install):
    wheels = list(install.wheel_folder(install.builds()[0]).glob("horovod-0.28.1-*.whl"))
    assert len(wheels) == 1


def test_nothing_to_do_takes_no_time(install, monkeypatch):
    monkeypatch.setattr(install, "dependencies", lambda args: pytest.fail("set-up began although it was done"))
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
    """The set-up is interrupted while it makes the environment.

    Its children get the signal, too, as with Ctrl-C.
    """
    process = subprocess.Popen(
        [sys.executable, INSTALL], env=os.environ | {"COURSE_ENV": str(tmp_path / "env")}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert "making a virtual environment" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.splitlines()[-1].startswith("install: interrupted. To go on: "), said


@pytest.mark.parametrize(
    ("gpus", "with_what"),
    [(0, [""]), (1, ["CUDA", ""]), (3, ["CUDA", ""]), (4, ["NCCL", "CUDA", ""])],
)
def test_nccl_exchanges_gradients_where_each_worker_has_a_gpu(gpus: int, with_what: list[str], install, monkeypatch):
    """If the build with NCCL fails, the next one is without NCCL, and the last one is without CUDA."""
    monkeypatch.setattr(install.subprocess, "check_output", lambda *a, **k: json.dumps(["13.0", gpus]))
    monkeypatch.setattr(install, "toolkit", lambda: Path("/usr/local/cuda"))
    found = [flags.get("HOROVOD_GPU_OPERATIONS", flags.get("HOROVOD_GPU", "")) for flags in install.builds()]
    assert found == with_what


def test_a_build_with_cuda_that_fails_is_said_in_a_line_and_the_next_one_is_taken(
    install, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        install, "builds", lambda gpus, mpi: [install.BUILD_FLAGS | install.WITH_CUDA, install.BUILD_FLAGS]
    )
    monkeypatch.setattr(install, "wheel_folder", lambda flags: tmp_path / str("HOROVOD_GPU" in flags))

    def compiles(target: Path, flags: dict) -> bool:
        if "HOROVOD_GPU" in flags:
            return False
        target.mkdir()
        (target / "horovod.whl").touch()
        return True

    monkeypatch.setattr(install, "build_into", compiles)
    assert install.horovod_wheel(None) == tmp_path / "False" / "horovod.whl"
    told = capsys.readouterr().out
    assert told.count("\n") == 1 and "Horovod did not compile with CUDA" in told and "built without" in told


def test_a_build_with_cuda_that_was_asked_for_does_not_become_another_one(install, tmp_path, monkeypatch):
    monkeypatch.setattr(
        install, "builds", lambda gpus, mpi: [install.BUILD_FLAGS | install.WITH_CUDA, install.BUILD_FLAGS]
    )
    monkeypatch.setattr(install, "wheel_folder", lambda flags: tmp_path / "wheel")
    monkeypatch.setattr(install, "CACHE", tmp_path)
    monkeypatch.setattr(install, "build_into", lambda target, flags: False)
    (tmp_path / "horovod-build.log").write_text("Could NOT find CUDAToolkit\n")
    with pytest.raises(SystemExit, match="Horovod did not compile"):
        install.horovod_wheel(1)


@pytest.mark.parametrize(("driver", "backend"), [(False, "cpu"), (True, "auto")])
def test_the_build_of_pytorch_fits_the_machine(driver: bool, backend: str, install, monkeypatch, capsys):
    """If PyTorch's own package source cannot be reached, one line says that pip chooses the build."""
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    monkeypatch.setattr(install, "has_nvidia_driver", lambda: driver)
    monkeypatch.setattr(install, "pip", lambda *arguments: None)
    called = []

    def run(command: list, **options) -> subprocess.CompletedProcess:
        called.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(install.subprocess, "run", run)
    install.pytorch()
    assert called[1][-3:] == ["--torch-backend", backend, "torch==2.13.0"]
    assert capsys.readouterr().out.splitlines()[-1].endswith("could not give this build, so pip chooses one")


def test_a_pytorch_that_is_there_is_kept(install, monkeypatch):
    monkeypatch.setattr(install, "pip", lambda *arguments: pytest.fail("it was installed again"))
    install.pytorch()


def test_nccl_is_found_where_pip_has_put_it(install, tmp_path: Path, monkeypatch):
    package = tmp_path / "site" / "nvidia" / "nccl"
    (package / "include").mkdir(parents=True)
    (package / "lib").mkdir()
    (package / "include" / "nccl.h").touch()
    (package / "lib" / "libnccl.so.2").touch()
    assert install.nccl_folder(tmp_path / "without") == {}
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    home = Path(install.nccl_folder(tmp_path / "with")["HOROVOD_NCCL_HOME"])
    assert (home / "include" / "nccl.h").is_file() and (home / "lib" / "libnccl.so").is_file()


def test_an_environment_that_is_not_ours_is_not_removed(install, tmp_path: Path, monkeypatch):
    """The environment is one that uv made without pip. The set-up stops, and removes nothing."""
    (tmp_path / "pyvenv.cfg").touch()
    monkeypatch.setattr(install, "VENV", tmp_path)
    monkeypatch.setattr(install, "PYTHON", tmp_path / "bin" / "python")
    monkeypatch.setattr(install, "STAMP", tmp_path / "course-installed.json")
    with pytest.raises(SystemExit, match="has no Python with pip"):
        install.virtual_environment()
    assert (tmp_path / "pyvenv.cfg").exists()
