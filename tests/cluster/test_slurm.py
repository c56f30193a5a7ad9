"""The batch script that a learner can take to a real cluster runs on a real Slurm here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cluster
from cluster import Cluster, slurm
from tests.cluster.conftest import on
from tests.conftest import REPOSITORY, SCRIPTS, until

SHORT = ("--epochs", "1", "--images", "512", "--test-images", "100", "--batch-size", "32")


@pytest.fixture(scope="module")
def two_hosts_with_slurm():
    with cluster.up(2) as made:
        slurm.start(made)
        yield made


@pytest.mark.slow
def test_the_batch_script_trains_on_two_hosts(two_hosts_with_slurm: Cluster, tmp_path: Path):
    alpha = two_hosts_with_slurm.hosts["alpha"]
    output = f"{tmp_path}/slurm-%j.out"
    script = SCRIPTS / "cifar_slurm.sh"
    done = on(alpha, "sbatch", "--chdir", REPOSITORY, "--output", output, script, *SHORT, "--output-dir", tmp_path)
    job = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
    assert job, done.stderr
    until(lambda: not on(alpha, "squeue", "--noheader").stdout, 300)
    said = (tmp_path / f"slurm-{job[1]}.out").read_text()
    assert said.startswith("4 workers on alpha:2,beta:2\n")
    assert said.count("2 workers on the CPU") == 2 and "epoch 1/1" in said
    assert (tmp_path / "model.pt").exists()


@pytest.mark.slow
def test_srun_starts_a_worker_on_each_host(two_hosts_with_slurm: Cluster):
    done = on(two_hosts_with_slurm.hosts["alpha"], "srun", "--nodes", 2, "uname", "-n")
    assert sorted(done.stdout.split()) == ["alpha", "beta"], done.stderr


@pytest.mark.slow
def test_a_shell_with_slurm_needs_one_option():
    command = [sys.executable, "-m", "cluster", "up", "--slurm", "sinfo", "--noheader", "--format", "%D %T %N"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert done.stdout == "2 idle alpha,beta\n", done.stderr
