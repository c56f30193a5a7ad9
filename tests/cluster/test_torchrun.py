"""PyTorch's own launcher trains on the same hosts, and starts the program again when a host goes away."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cluster
from cluster import Cluster, Host
from tests.conftest import RUN_SECONDS, until

DDP = """
import sys, torch
import torch.distributed as dist
import torch.distributed.nn  # must come before the group exists
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = torch.nn.Linear(32, 10).double()
wrapped = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
images = torch.randn(640, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
for part in range(10):
    mine = torch.arange(64 * part, 64 * (part + 1))[dist.get_rank()::dist.get_world_size()]
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(wrapped(images[mine]), images[mine, :10].argmax(1)).backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(net.state_dict(), sys.argv[1])
del wrapped
dist.destroy_process_group()
"""

# Each worker loads the last checkpoint, and makes updates until there are enough. Worker 0 saves each of them.
ELASTIC = """
import pathlib, sys, time, torch
import torch.distributed as dist

folder = pathlib.Path(sys.argv[1])
dist.init_process_group("gloo")
checkpoint = folder / "checkpoint.pt"
done = int(torch.load(checkpoint)) if checkpoint.exists() else 0
dist.barrier()
if dist.get_rank() == 0:
    with (folder / "starts").open("a") as file:
        print(done, dist.get_world_size(), file=file)
while done < 200:
    time.sleep(0.05)
    dist.all_reduce(torch.ones(1))
    done += 1
    if dist.get_rank() == 0:
        torch.save(torch.tensor(done), folder / "part")
        (folder / "part").replace(checkpoint)
dist.destroy_process_group()
"""


@pytest.fixture
def two_hosts():
    with cluster.up(2) as made:
        yield made


# Otherwise the store in which workers find each other outlives a restart, and new workers find the addresses of dead
# ones there (https://github.com/pytorch/pytorch/issues/135712).
NEW_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"


def torchrun(host: Host, nodes: str, script: Path, *arguments: object, **options: object) -> subprocess.Popen:
    """Start two workers on a host. The hosts meet on alpha."""
    launch = ["-m", "torch.distributed.run", "--nnodes", nodes, "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    launch += ["--rdzv-endpoint", "alpha:29500", "--rdzv-id", "run", "--local-addr", host.name]
    launch += [str(text) for pair in options.items() for text in pair]
    command = host.command("env", "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=eth0", NEW_STORE, sys.executable, *launch)
    command += [str(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_ddp_gives_the_same_weights_on_two_hosts_as_on_one(two_hosts: Cluster, tmp_path: Path):
    script = tmp_path / "ddp.py"
    script.write_text(DDP)
    runs = [torchrun(host, "2", script, tmp_path / "two.pt") for host in two_hosts.hosts.values()]
    for process in runs:
        output, _ = process.communicate(timeout=RUN_SECONDS)
        assert process.returncode == 0, output
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
    subprocess.run([*launch, script, tmp_path / "one.pt"], check=True, capture_output=True)
    one, two = (torch.load(tmp_path / name, weights_only=True) for name in ("one.pt", "two.pt"))
    assert torch.equal(one["weight"], two["weight"]) and torch.equal(one["bias"], two["bias"])


@pytest.mark.slow
def test_an_elastic_torchrun_starts_again_from_its_checkpoint(two_hosts: Cluster, tmp_path: Path):
    script = tmp_path / "elastic.py"
    script.write_text(ELASTIC)
    alpha, beta = two_hosts.hosts.values()
    runs = [torchrun(host, "1:2", script, tmp_path, **{"--max-restarts": 3}) for host in (alpha, beta)]
    checkpoint = tmp_path / "checkpoint.pt"
    until(lambda: checkpoint.exists() and int(torch.load(checkpoint)) >= 20)
    beta.kill()
    output, _ = runs[0].communicate(timeout=RUN_SECONDS)
    runs[1].communicate()
    assert runs[0].returncode == 0, output
    assert int(torch.load(checkpoint)) == 200
    starts = [tuple(map(int, line.split())) for line in (tmp_path / "starts").read_text().splitlines()]
    assert [size for _, size in starts] == [4, 2]
    assert starts[1][0] >= 20  # Nothing before the last checkpoint was made again.
