"""The six lesson scripts run with real workers: what they write, how they fail, and how they differ."""

import difflib
import itertools
import re
from pathlib import Path

import pytest
import torch
from torch.nn import BatchNorm2d

from cifar.model import BootcampResNet, ResNet9, no_norm
from tests.conftest import REPOSITORY, SCRIPTS, metrics, run_python, run_workers

LESSONS = ("cifar_base", "cifar_batch_norm", "cifar_scalelr", "cifar_warmup", "cifar_lamb")
SMALL = ("--images", 1024, "--epochs", 2, "--batch-size", 32)
FIELDS = ["epoch", "lr", "train_loss", "test_accuracy", "images_per_s", "seconds"]
NETWORK = {"cifar_single": no_norm, "cifar_base": no_norm}


def check_output(folder: Path, script: str) -> None:
    lines = metrics(folder)
    assert [list(line) for line in lines] == [FIELDS, FIELDS]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert lines[1]["train_loss"] < lines[0]["train_loss"]
    assert lines[1]["test_accuracy"] > 0.1
    net = BootcampResNet(norm=NETWORK.get(script, BatchNorm2d))
    net.load_state_dict(torch.load(folder / "model.pt", weights_only=True))
    assert sorted(path.name for path in folder.iterdir()) == ["metrics.jsonl", "model.pt"]


# Two of the scripts show it in `make test`; the others differ from them by a few lines.
QUICK = ("cifar_base", "cifar_lamb")


@pytest.mark.parametrize(
    "script", [pytest.param(script, marks=() if script in QUICK else pytest.mark.slow) for script in LESSONS]
)
def test_four_workers_train_and_only_rank_0_reports(script: str, tmp_path: Path):
    done = run_workers(4, SCRIPTS / f"{script}.py", *SMALL, "--output-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    check_output(tmp_path, script)
    said = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert {line[:3] for line in said} == {"[0]"}
    assert sum("workers on the CPU" in line or "GPU" in line for line in said) == 1


def test_on_one_worker_the_horovod_script_does_just_what_the_plain_one_does(tmp_path: Path):
    single = run_python(SCRIPTS / "cifar_single.py", *SMALL, "--output-dir", tmp_path / "single")
    base = run_workers(1, SCRIPTS / "cifar_base.py", *SMALL, "--output-dir", tmp_path / "base")
    assert (single.returncode, base.returncode) == (0, 0), single.stderr + base.stderr
    check_output(tmp_path / "single", "cifar_single")
    for plain, horovod in zip(metrics(tmp_path / "single"), metrics(tmp_path / "base"), strict=True):
        same = ("epoch", "lr", "train_loss", "test_accuracy")
        assert [plain[name] for name in same] == [horovod[name] for name in same]
    weights = [torch.load(tmp_path / run / "model.pt", weights_only=True) for run in ("single", "base")]
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name]), name


def test_the_reported_accuracy_is_that_of_the_saved_network_on_the_whole_test_set(cifar10: Path, tmp_path: Path):
    from cifar.data import load
    from cifar.training import count_correct

    images = ("--images", 2050, "--epochs", 1, "--batch-size", 32)  # 2050 images do not divide by four workers.
    done = run_workers(4, SCRIPTS / "cifar_batch_norm.py", *images, "--output-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    net = BootcampResNet(norm=BatchNorm2d)
    net.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    _, test = load(cifar10)
    correct = count_correct(net, test, torch.arange(len(test))).item()
    # In bfloat16, the order of two nearly equal logits may change.
    assert metrics(tmp_path)[0]["test_accuracy"] * len(test) == pytest.approx(correct, abs=15)


def test_the_assignments_starter_works_on_one_worker(tmp_path: Path):
    starter = SCRIPTS / "assignment" / "train.py"
    done = run_python(starter, "--images", 1024, "--epochs", 2, "--batch-size", 128, "--output-dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [list(line) for line in metrics(tmp_path)] == [FIELDS, FIELDS]
    ResNet9(width=16).load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--colour", "red"), "unrecognized arguments: --colour red (--help lists the options)"),
        (("--batch-size", "0"), "argument --batch-size: must be a whole number of 1 or more, not '0'"),
        (("--test-images", "2"), "--test-images 2: 4 workers need one each, or more"),
        (("--data-dir", "/nonexistent"), "no data folder /nonexistent. Leave --data-dir out"),
        (("--lr", "1e30", *map(str, SMALL)), "the training loss is nan after epoch 1: try a lower --lr."),
    ],
)
def test_a_mistake_ends_all_workers_with_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path):
    done = run_workers(4, SCRIPTS / "cifar_base.py", *arguments, "--output-dir", tmp_path / "out")
    assert done.returncode != 0
    ours = [line for line in done.stderr.splitlines() if "cifar_base.py: " in line]
    assert len(ours) == 1 and ours[0].startswith("[0]<stderr>:"), done.stderr
    assert message in ours[0]
    assert 'File "' not in "".join(line for line in done.stderr.splitlines() if line.startswith("["))
    assert not (tmp_path / "out" / "model.pt").exists()


def test_help_explains_each_option_with_its_default():
    shown = run_python(SCRIPTS / "cifar_lamb.py", "--help")
    assert shown.returncode == 0
    options = re.findall(r"^  (--[a-z-]+)", shown.stdout, flags=re.MULTILINE)
    assert options == [
        "--data-dir", "--output-dir", "--epochs", "--batch-size", "--lr", "--seed", "--images", "--test-images",
        "--device",
    ]  # fmt: skip
    assert " ".join(shown.stdout.split()).count("(default: ") == len(options)


def code_lines(path: Path) -> list[str]:
    """Return the lines of a script without its docstring, imports and empty lines."""
    body = path.read_text().split('"""', 2)[2]
    return [line for line in body.splitlines() if line and not line.startswith(("import ", "from "))]


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that only the first script has, and those that only the second script has."""
    diff = list(difflib.ndiff(code_lines(SCRIPTS / f"{before}.py"), code_lines(SCRIPTS / f"{after}.py")))
    return [line[2:] for line in diff if line.startswith("- ")], [line[2:] for line in diff if line.startswith("+ ")]


@pytest.mark.parametrize(("before", "after"), list(itertools.pairwise(LESSONS)))
def test_neighbours_differ_by_their_lesson_alone(before: str, after: str):
    lesson = {
        "cifar_batch_norm": ["norm=BatchNorm2d", "running_statistics"],
        "cifar_scalelr": ["lambda update: hvd.size()"],
        "cifar_warmup": ["warmup = ", "warmup_factor"],
        "cifar_lamb": ["lr=0.01", "Lamb("],
    }[after]
    _, added = changed(before, after)
    assert len(added) == len(lesson) <= 3
    for line, word in zip(added, lesson, strict=True):
        assert word in line


def test_the_first_step_adds_horovods_key_changes_alone():
    _, added = changed("cifar_single", "cifar_base")
    assert all("hvd." in line or "#" in line or "training.save" in line for line in added), added
    horovod = re.findall(r"hvd\.(\w+)", " ".join(added))
    assert set(horovod) == {
        "init", "local_rank", "local_size", "rank", "size", "DistributedOptimizer", "broadcast_parameters",
        "allreduce", "Sum",
    }  # fmt: skip


def test_the_scripts_are_about_40_lines():
    for script in ("cifar_single", *LESSONS):
        assert len((SCRIPTS / f"{script}.py").read_text().splitlines()) <= 44, script


def test_the_naive_conversion_differs_from_the_reference_by_the_rate_alone():
    reference = code_lines(REPOSITORY / "solutions" / "assignment" / "train.py")
    naive = code_lines(REPOSITORY / "tests" / "submissions" / "naive" / "train.py")
    added = [line[2:] for line in difflib.ndiff(reference, naive) if line.startswith("+ ")]
    assert added == ["scheduler = LambdaLR(optimizer, lambda update: decay_factor(update, 0, updates))"]
