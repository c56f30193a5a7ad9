"""The observer writes a log inside a worker, and it costs other processes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import horovod.torch as hvd
import pytest
import torch

from cifar.support.fingerprint import fingerprint
from grader.run.hooks.grader_observer import update_probe
from grader.run.hooks.grader_observer.log_format import PROJECTIONS
from grader.run.worker_log import read_worker, updates_so_far
from grader.sandbox.run_paths import HOOKS, RunPaths

PROGRAM = """
import os, sys
import torch

torch.manual_seed(0)
net, other = torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)
first = torch.optim.SGD(net.parameters(), lr=0.5)
second = torch.optim.SGD(other.parameters(), lr=0.25)
loss = torch.nn.MSELoss()
for update in range(2):
    sys.audit("cifar.batch", "train", torch.tensor([4, update]))
    first.zero_grad()
    second.zero_grad()
    loss(other(net(torch.ones(2, 3))), torch.zeros(2, 1)).backward()
    first.step()
    if update == 0:
        second.step()
os.mkdir(os.path.join(sys.argv[1], "own"))
for name in ("part", "own/log"):
    with open(os.path.join(sys.argv[1], name), "w"):
        pass
os.rename(os.path.join(sys.argv[1], "part"), os.path.join(sys.argv[1], "model.pt"))
torch.save([*net.parameters()], sys.argv[2])
"""
LOADED = "import json, sys; print(json.dumps([name in sys.modules for name in ('torch', 'grader_observer')]))"


def python(root: Path, *arguments: object, **variables: str) -> str:
    """Run Python as a worker of a graded run does, and return its output."""
    paths = RunPaths(root)
    for folder in (paths.observe, paths.output):
        folder.mkdir(exist_ok=True)
    python_path = os.pathsep.join([str(HOOKS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": python_path, "GRADER_OBSERVE": str(paths.observe)} | variables
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a program as worker 2 with the observer, and return the folder of the run."""
    root = tmp_path_factory.mktemp("observed")
    (root / "program.py").write_text(PROGRAM)
    python(root, root / "program.py", root / "output", root / "weights.pt", HOROVOD_RANK="2")
    return root


def test_the_grader_reads_what_the_observer_writes(observed: Path):
    worker = read_worker(RunPaths(observed).worker_log(2))
    assert worker.first.bytes == 8 * 4
    assert worker.first.size == 1
    assert worker.first.device == "cpu"
    assert worker.first.optimizer == "SGD"
    assert [update.lr for update in worker.updates] == [[0.5], [0.5]]
    assert [update.images for update in worker.updates] == [[4, 0], [4, 1]]
    assert [update.calls for update in worker.updates] == [1, 1]
    assert all(update.loss > 0 for update in worker.updates)
    assert worker.updates[1].weights == fingerprint(torch.load(observed / "weights.pt", weights_only=True))
    assert worker.end.end == 2
    assert worker.wrote() == {"part", "own/log", "model.pt"}


def test_two_optimizers_of_one_update_are_projected_together(observed: Path):
    worker = read_worker(RunPaths(observed).worker_log(2))
    assert len(worker.updates) == 2
    for update in worker.updates:
        assert len(update.local) == PROJECTIONS
        assert torch.tensor(update.local).allclose(torch.tensor(update.applied), rtol=1e-4, atol=1e-5)


class Plain(torch.optim.SGD):
    """An optimizer that is SGD by another name."""


class Own(torch.optim.SGD):
    """An optimizer with steps of its own."""

    def step(self, closure=None):
        return super().step(closure)


def test_an_optimizer_has_the_name_of_the_class_that_makes_its_steps():
    weight = [torch.nn.Parameter(torch.zeros(2))]
    made = [cls(weight, lr=0.1) for cls in (torch.optim.SGD, Plain, Own, torch.optim.AdamW)]
    assert [update_probe.kind(each) for each in made] == ["SGD", "SGD", "Own", "AdamW"]
    alone = SimpleNamespace(included=lambda: False)
    assert update_probe.kind(hvd.DistributedOptimizer(Plain(weight, lr=0.1), process_set=alone)) == "SGD"


def test_the_rate_of_most_of_the_networks_weights_comes_first():
    net = torch.nn.Linear(3, 2)
    groups = [
        {"params": [torch.zeros(99)], "lr": 0.9}, {"params": [net.bias], "lr": 0.2},
        {"params": [net.weight], "lr": 0.1},
    ]  # fmt: skip
    optimizer = torch.optim.SGD(groups, lr=0.5)
    assert update_probe.rates(optimizer, list(net.parameters())) == [0.1, 0.2, 0.9]
    assert update_probe.rates(optimizer, None) == [0.9, 0.1, 0.2]


def test_while_a_run_goes_on_its_updates_are_counted(observed: Path, tmp_path: Path):
    lines = RunPaths(observed).worker_log(2).read_bytes().splitlines(keepends=True)
    (tmp_path / "log").write_bytes(b"".join(lines[:-1]))
    assert updates_so_far(tmp_path / "log") == 2


def test_a_process_that_is_no_worker_loads_neither_the_observer_nor_pytorch(tmp_path: Path):
    assert json.loads(python(tmp_path, "-c", LOADED)) == [False, False]


def test_a_helper_process_of_a_worker_is_not_observed_and_does_not_load_pytorch(tmp_path: Path):
    log = RunPaths(tmp_path).worker_log(0)
    log.parent.mkdir()
    log.write_text("the worker's\n")
    torch_loaded, observer_loaded = json.loads(python(tmp_path, "-c", LOADED, HOROVOD_RANK="0"))
    assert observer_loaded
    assert not torch_loaded
    assert log.read_text() == "the worker's\n"


def test_the_grader_imports_the_format_of_the_log_and_nothing_else_of_the_observer():
    program = "import json, sys, grader.check; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    package = "grader.run.hooks.grader_observer"
    loaded = {name for name in json.loads(done.stdout) if "grader_observer" in name}
    assert loaded == {package, f"{package}.log_format"}
