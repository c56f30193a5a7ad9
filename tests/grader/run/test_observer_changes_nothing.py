"""Right programs of many styles train the same weights, to the last bit, with the observer and without it.

Two workers train, because a sum of two numbers does not depend on their order. With more workers, some programs give
other last bits in each run.
"""

import subprocess
from pathlib import Path

import pytest
import torch

from grader.run.rekeyed_data import rekey, write_folder
from grader.run.worker_log import read_worker
from grader.sandbox.isolation import environment
from grader.sandbox.run_paths import RunPaths
from tests.support.submission_suite import Submission, submissions

WORKERS, IMAGES, BATCH, SECONDS = 2, 320, 40, 600
RIGHT = [one for one in submissions() if one.kind == "right" and one.name != "resumes"]  # that one needs an earlier run
LOOP = "    loss = training.train_epoch(net, optimizer, scheduler, data, CrossEntropyLoss(label_smoothing=0.1))\n"
STYLES = {
    "hooks_of_its_own": [["optimizer = SGD(", """seen = []
torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: seen.append(type(module)))
def clip(weight):
    weight.grad.clamp_(-0.1, 0.1)
for weight in net.parameters():
    weight.register_post_accumulate_grad_hook(clip)
net.classify.register_full_backward_hook(lambda module, before, after: tuple(2 * part for part in before))
optimizer = SGD("""]],
    "functional": [
        ["import augment, batches, load, shard,", "import augment, batches, load, normalise, shard,"],
        [LOOP, """    names, weights = zip(*net.named_parameters())
    def loss_of(weights, images, labels):
        statistics = {name: value.clone() for name, value in net.named_buffers()}
        logits = torch.func.functional_call(net, dict(zip(names, weights)) | statistics, normalise(images))
        return CrossEntropyLoss(label_smoothing=0.1)(logits, labels)
    for images, labels in data:
        optimizer.zero_grad()
        gradients, loss = torch.func.grad_and_value(loss_of)(weights, images, labels)
        for weight, gradient in zip(weights, gradients):
            weight.grad = hvd.allreduce(gradient.contiguous())
        with optimizer.skip_synchronize():
            optimizer.step()
        scheduler.step()
    loss = loss.detach()
"""]],
    "several_networks": [
        ["import augment, batches, load, shard,", "import augment, batches, load, normalise, shard,"],
        ["optimizer = SGD(net.parameters(),", """teacher = ResNet9(width=16).to(device).requires_grad_(False)
hvd.broadcast_parameters(teacher.state_dict(), root_rank=0)
class Distils(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.student, self.extra = net, torch.nn.Linear(10, 10)
    def forward(self, images):
        return self.extra(self.student(images)) + 0.1 * teacher(images)
both = Distils()
hvd.broadcast_parameters(both.state_dict(), root_rank=0)
optimizer = SGD(both.parameters(),"""],
        ["named_parameters=net.named_parameters()", "named_parameters=both.named_parameters()"],
        ["training.train_epoch(net,", "training.train_epoch(both,"]],
}  # fmt: skip
PROGRAMS = RIGHT + [Submission("right", name, [], edits=edits) for name, edits in STYLES.items()]


@pytest.fixture(scope="module")
def data(cifar10: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "cifar10"
    write_folder(rekey(cifar10, "a key", IMAGES, 500), folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_weights_are_equal_to_the_last_bit(program: Submission, data: Path, tmp_path: Path):
    program.write(tmp_path / "source")
    alone = train(tmp_path, "alone", data, observed=False)
    watched = train(tmp_path, "watched", data, observed=True)
    assert alone.keys() == watched.keys()
    assert [name for name in alone if not torch.equal(alone[name], watched[name])] == []


def train(root: Path, name: str, data: Path, observed: bool) -> dict[str, torch.Tensor]:
    """Train a program with two workers for two epochs. Return the weights of its `model.pt`."""
    paths = RunPaths(root / name)
    for folder in (paths.observe, paths.output, paths.challenges):
        folder.mkdir(parents=True)
    command = [
        "horovodrun", "-np", WORKERS, "python", "train.py", "--data-dir", data, "--output-dir", paths.output,
        "--epochs", 2, "--batch-size", BATCH, "--seed", 1,
    ]  # fmt: skip
    env = environment(paths, home=str(root), threads=1)
    if not observed:
        del env["PYTHONPATH"], env["GRADER_OBSERVE"], env["HOROVOD_TIMELINE"]
    done = subprocess.run(
        list(map(str, command)), cwd=root / "source", env=env, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    updates = [len(read_worker(paths.worker_log(rank)).updates) for rank in range(WORKERS)]
    assert (min(updates) > 0) == observed
    return torch.load(paths.output / "model.pt", weights_only=True)
