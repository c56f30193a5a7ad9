"""Runs on several hosts: they give the same weights as on one, and a host that cannot take part is named."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cluster import Cluster, ClusterError, check_hosts, horovod_launch
from tests.cluster.conftest import on
from tests.conftest import REPOSITORY, run_workers, until

SHORT = ("--epochs", "1", "--images", "512", "--batch-size", "32", "--device", "cpu")
PATIENCE_SECONDS = 60  # The stated time, in which each failure must be told.


def horovodrun(cluster: Cluster, hosts: str, *command: object, workers: int = 4) -> subprocess.CompletedProcess:
    """Run a program on several hosts, as somebody on the first host does."""
    launch = [sys.executable, "-m", "cluster", "horovodrun", "-np", workers, "-H", hosts, sys.executable, *command]
    return on(cluster.hosts["alpha"], *launch)


def told(done: subprocess.CompletedProcess) -> list[str]:
    """Return the lines that `python -m cluster` itself has written."""
    return [line for line in done.stderr.splitlines() if line.startswith("cluster: ")]


def test_two_hosts_give_the_same_weights_as_one(three_hosts: Cluster, cifar10: Path, tmp_path: Path):
    """The reference solution sends all gradients in one buffer, so the order of the sums is always the same.

    With more than three cores, a worker has more threads on two hosts than on one. Then the last digits differ.
    """
    script = REPOSITORY / "solutions" / "assignment" / "train.py"
    two = horovodrun(three_hosts, "alpha:2,beta:2", script, *SHORT, "--output-dir", tmp_path / "two")
    one = run_workers(4, script, *SHORT, "--output-dir", tmp_path / "one")
    assert (two.returncode, one.returncode) == (0, 0), two.stderr + one.stderr
    assert two.stdout.count("2 workers on the CPU") == 2  # Each host's first worker says so.
    first, second = (torch.load(tmp_path / name / "model.pt", weights_only=True) for name in ("one", "two"))
    assert first.keys() == second.keys() and all(torch.allclose(first[name], second[name], atol=1e-3) for name in first)


def test_a_host_that_does_not_exist_is_named(three_hosts: Cluster):
    done = horovodrun(three_hosts, "alpha:2,omega:2", "train.py")
    assert done.returncode == 2 and len(told(done)) == 1
    assert told(done)[0].startswith("cluster: there is no host omega (")


def test_a_host_that_refuses_the_key_is_named(three_hosts: Cluster):
    beta = three_hosts.hosts["beta"].namespaces
    beta.run("mv", "/run/cluster/beta/authorized_keys", "/run/cluster/beta/away")
    try:
        done = horovodrun(three_hosts, "alpha:1,beta:1", "train.py", workers=2)
    finally:
        beta.run("mv", "/run/cluster/beta/away", "/run/cluster/beta/authorized_keys")
    assert done.returncode == 2 and len(told(done)) == 1
    assert told(done)[0].startswith("cluster: beta refuses your key (") and "ssh-copy-id beta" in told(done)[0]


@pytest.mark.parametrize("different", ["Python", "torch", "the program", "the data"])
def test_a_host_with_another_thing_is_named(three_hosts: Cluster, tmp_path: Path, cifar10: Path, different: str):
    """The host beta sees another file in the place of the right one."""
    script = tmp_path / "train.py"
    script.write_text("print('right')")
    other = tmp_path / "other.py"
    other.write_text("print('wrong')")
    version = tmp_path / "METADATA"
    version.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n")
    installed = Path(torch.__file__).parents[1]
    metadata = next(installed.glob("torch-*.dist-info")) / "METADATA"
    right, wrong, name = {
        "Python": (Path(sys.executable).resolve(), Path("/bin/false"), "cannot run"),
        "torch": (metadata, version, "has another torch than this host: 1.0 there, "),
        "the program": (script, other, f"has another {script} than this host"),
        "the data": (cifar10 / "data_batch_1.bin", other, f"has another {cifar10} than this host"),
    }[different]
    beta = three_hosts.hosts["beta"].namespaces
    beta.run("mount", "--bind", wrong, right)
    try:
        done = horovodrun(three_hosts, "alpha:1,beta:1", script, "--data-dir", cifar10, workers=2)
    finally:
        beta.run("umount", right)
    assert done.returncode == 2 and len(told(done)) == 1
    assert told(done)[0].startswith(f"cluster: beta {name}")


@pytest.mark.parametrize("hosts", ["alpha", "alpha:0", "alpha:two", "alpha:1,alpha:1", ":2", ""])
def test_a_wrong_list_of_hosts_is_refused(hosts: str):
    with pytest.raises(ClusterError, match="write each host once with its number of workers"):
        horovod_launch.read_hosts(hosts)


def test_too_few_places_are_told(three_hosts: Cluster):
    done = horovodrun(three_hosts, "alpha:1,beta:1", "train.py")
    assert told(done) == ["cluster: -np 4: the hosts have places for 2 workers. Raise them in -H"]


def test_a_program_that_fails_is_told_from_a_host_that_is_away(three_hosts: Cluster, tmp_path: Path):
    script = tmp_path / "train.py"
    script.write_text("import horovod.torch as hvd\nhvd.init()\nassert hvd.rank() != 1, 'worker 1 gives up'\n")
    done = horovodrun(three_hosts, "alpha:2,beta:1", script, workers=3)
    assert done.returncode == 1 and len(told(done)) == 1
    assert told(done)[0].endswith("worker 1 on alpha ended with exit status 1. See its last lines above")
    assert "worker 1 gives up" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["cut", "kill"])
def test_a_host_that_goes_away_in_the_middle_is_named_in_time(three_hosts: Cluster, tmp_path: Path, trouble: str):
    """The workers exchange numbers without end, so the trouble comes in the middle of an all-reduce."""
    script, begun = tmp_path / "train.py", tmp_path / "begun"
    script.write_text(
        "import pathlib, torch, horovod.torch as hvd\nhvd.init()\n"
        f"while True:\n    hvd.allreduce(torch.ones(1000))\n    pathlib.Path({str(begun)!r}).touch()\n"
    )
    launch = [sys.executable, "-m", "cluster", "horovodrun", "-np", "4", "-H", "alpha:2,gamma:2"]
    command = three_hosts.hosts["alpha"].command(*launch, sys.executable, script)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(begun.exists)
        getattr(three_hosts.hosts["gamma"], trouble)()
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    three_hosts.hosts["gamma"].kill()
    three_hosts.start("gamma")
    lines = [line for line in errors.splitlines() if line.startswith("cluster: ")]
    assert process.returncode != 0 and len(lines) == 1
    assert "gamma does not answer" in lines[0] and "Is it on" in lines[0]


def test_horovod_gives_the_first_ranks_to_the_first_host():
    assert horovod_launch.ranks(3, {"alpha": 2, "beta": 2}) == ["alpha", "alpha", "beta"]


def test_this_host_is_not_asked_by_ssh():
    assert check_hosts.unreachable("localhost") == ""
