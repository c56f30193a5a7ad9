"""The course is set up, trained and graded on every Python that it supports, beside a PyTorch with CUDA.

By default pip on Linux installs a PyTorch with CUDA, so these machines have one. One machine has no CUDA toolkit. The
other one has a part of a toolkit, which Horovod's own build files take for a complete one.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow
# seconds: The first time includes downloading and unpacking 5 GB of PyTorch with CUDA.
SETUP_SECONDS, RUN_SECONDS = 3600, 1200
OTHERS = {"3.12": "without a toolkit", "3.13": "with a part of a toolkit"}


def interpreter(version: str) -> Path:
    """Return a Python of this version, from the path or from pyenv."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    found = [Path(path) for path in (shutil.which(f"python{version}"),) if path and "shims" not in path] + pyenv
    assert found, f"these tests need Python {version}, on the path or by pyenv"
    return found[0]


def machine(toolkit: str, folder: Path) -> list[str]:
    """Return the beginning of a command that changes /usr/local for the command's remaining part.

    It has no CUDA there, or it has a part of CUDA and a broken nvcc.
    """
    command = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/usr/local"]
    if toolkit == "without a toolkit":
        return command
    part = folder / "usr-local"
    (part / "cuda" / "include").mkdir(parents=True)
    (part / "cuda" / "include" / "cuda.h").write_text("#define CUDA_VERSION 13000\n")
    (part / "bin").mkdir()
    (part / "bin" / "nvcc").write_text('#!/bin/sh\nexec /usr/local/cuda-13.0/bin/nvcc "$@"\n')
    (part / "bin" / "nvcc").chmod(0o755)
    return [*command, "--bind", str(part), "/usr/local"]


@pytest.fixture(params=OTHERS)
def clone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Yield a clone of the repository that is set up with another Python on such a machine. Remove it at the end."""
    python = interpreter(request.param)
    assert not python.resolve().is_relative_to("/usr/local"), "that folder is hidden from the set-up"
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, folder], check=True)
    environment = python.parent, "/usr/local/bin", "/usr/bin", "/bin"
    clean = {name: value for name, value in os.environ.items() if name not in ("PIP_FIND_LINKS", "COURSE_ENV")}
    clean |= {"PATH": os.pathsep.join(map(str, environment)), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([python, "-m", "venv", folder / ".venv"], check=True)
    with_cuda = [folder / ".venv" / "bin" / "pip", "install", "-q", "torch==2.13.0"]
    subprocess.run(with_cuda, env=clean | {"PIP_CONFIG_FILE": os.devnull}, check=True, timeout=SETUP_SECONDS)
    command = [*machine(OTHERS[request.param], tmp_path), "make", f"PYTHON={python}", "setup"]
    subprocess.run(command, cwd=folder, env=clean, check=True, timeout=SETUP_SECONDS)
    yield folder
    shutil.rmtree(folder)


def train(clone: Path, machine: Sequence[str] = ()) -> str:
    """Train with a lesson's script on four workers on the CPU, and return the output.

    `machine` is the beginning of a command that runs the command's remaining part on a machine.
    """
    python = clone / ".venv" / "bin" / "python"
    command = [python.with_name("horovodrun"), "-np", "4", python, "source_code/cifar_lamb.py", "--images", "1024"]
    done = subprocess.run(
        [*machine, *command, "--epochs", "1", "--device", "cpu", "--output-dir", clone / "out"],
        cwd=clone, timeout=RUN_SECONDS,
        env=os.environ | {"PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def test_four_workers_train_and_are_graded_on_another_python(clone: Path, cifar10: Path):
    python = clone / ".venv" / "bin" / "python"
    cuda = subprocess.check_output([python, "-c", "import torch; print(torch.version.cuda)"], text=True)
    assert cuda.strip() != "None"
    train(clone)
    check = [python, "-m", "grader", "check", "solutions/assignment", "--profile", "fast", "--output", clone / "grade"]
    graded = subprocess.run(check, cwd=clone, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert graded.returncode == 0, graded.stdout[-2000:]
    assert re.search(r"PASSED\s+100 of 100 points", graded.stdout)


@pytest.mark.parametrize("clone", ["3.12"], indirect=True)
def test_horovod_is_built_with_cuda_and_nccl_without_a_card(clone: Path, cifar10: Path, tmp_path: Path):
    """The toolkit is made of pip packages, and NCCL comes with PyTorch. The built Horovod then runs on the CPU."""
    python = clone / ".venv" / "bin" / "python"
    names = ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-cccl", "nvidia-cuda-runtime")
    packages = [f"{name}==13.0.*" for name in names]
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "toolkit", *packages]
    subprocess.run(install, check=True, timeout=SETUP_SECONDS)
    toolkit = tmp_path / "toolkit" / "nvidia" / "cu13"
    (toolkit / "lib" / "libcudart.so").symlink_to("libcudart.so.13")
    (toolkit / "lib64").symlink_to("lib")
    (clone / ".venv" / "course-installed.json").unlink()
    build = [python, "source_code/install/install.py", "--gpus", "4"]
    path = os.pathsep.join([str(toolkit / "bin"), "/usr/bin", "/bin"])
    environment = os.environ | {
        "PATH": path,
        "COURSE_ENV": str(clone / ".venv"),
        "XDG_CACHE_HOME": str(tmp_path / "gpu"),
    }
    subprocess.run(build, cwd=clone, env=environment, check=True, timeout=SETUP_SECONDS)
    probe = "import horovod.torch as hvd; print(bool(hvd.cuda_built()), bool(hvd.nccl_built()))"
    assert subprocess.check_output([python, "-c", probe], text=True).split() == ["True", "True"]
    train(clone)
