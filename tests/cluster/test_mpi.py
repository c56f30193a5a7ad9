"""A Horovod that is built with MPI and with Gloo trains on two hosts by either, with the same weights."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import cluster
from tests.conftest import REPOSITORY, RUN_SECONDS

SHORT = ("--epochs", "1", "--images", "512", "--batch-size", "32")


@pytest.fixture(scope="module")
def horovod_with_mpi(install: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Horovod that has MPI. Its wheel is in the user's cache, or it is built now."""
    install.system_packages(install.MPI)
    folder = tmp_path_factory.mktemp("horovod")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    subprocess.run([*command, install.horovod_wheel(None, mpi=True)], check=True)
    return folder


@pytest.mark.slow
def test_mpi_and_gloo_give_the_same_weights_on_two_hosts(horovod_with_mpi: Path, cifar10: Path, tmp_path: Path):
    program = [REPOSITORY / "solutions" / "assignment" / "train.py", *SHORT]
    launch = [sys.executable, "-m", "horovod.runner.launch", "-np", "4", "-H", "alpha:2,beta:2"]
    with cluster.up(2) as hosts:
        for way in ("mpi", "gloo"):
            line = [*launch, f"--{way}", "--network-interfaces", "eth0", sys.executable, *program]
            command = ["env", f"PYTHONPATH={horovod_with_mpi}", *map(str, line), "--output-dir", tmp_path / way]
            done = hosts.hosts["alpha"].run(*command, capture_output=True, text=True, timeout=RUN_SECONDS)
            assert done.returncode == 0, done.stdout + done.stderr
            assert done.stdout.count("2 workers on the CPU") == 2
    mpi, gloo = (torch.load(tmp_path / way / "model.pt", weights_only=True) for way in ("mpi", "gloo"))
    assert all(torch.allclose(mpi[name], gloo[name], atol=1e-3) for name in mpi)
