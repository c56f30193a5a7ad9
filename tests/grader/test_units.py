"""The grader's parts, each alone: the key, the rubric's shape, what it reads from a run, the report."""

import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cifar import data, download, training
from cifar.model import ResNet9
from cifar.support.fingerprint import fingerprint
from grader.__main__ import main
from grader.common import contract, untrusted
from grader.grading import checkpoint, grade, gradient_analysis, rubric, shard_analysis
from grader.grading.rubric import MUST_PASS, RUBRIC
from grader.report import terminal
from grader.run import rekeyed_data, watchdog, worker_log
from grader.sandbox import run_in_sandbox
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.guest_scripts import classify_images
from grader.sandbox.run_paths import RunPaths
from tests.conftest import run_python


@pytest.fixture(scope="module")
def rekeyed(cifar10: Path) -> rekeyed_data.Rekeyed:
    return rekeyed_data.rekey(cifar10, "a key", train_images=1000, test_images=2000)


def test_a_key_decides_everything_and_another_key_everything_else(rekeyed, cifar10: Path):
    again = rekeyed_data.rekey(cifar10, "a key", train_images=1000, test_images=2000)
    other = rekeyed_data.rekey(cifar10, "another key", train_images=1000, test_images=2000)
    assert np.array_equal(rekeyed.secret, again.secret) and np.array_equal(rekeyed.train, again.train)
    assert not np.array_equal(rekeyed.secret, other.secret)


def test_no_secret_test_image_is_in_what_the_run_gets(rekeyed):
    assert (len(rekeyed.visible), len(rekeyed.secret)) == (200, 1800)
    given_images = {record[1:].tobytes() for part in (rekeyed.train, rekeyed.visible) for record in part}
    assert not given_images & {record[1:].tobytes() for record in rekeyed.secret}


def test_rekeying_renames_classes_and_colours_and_keeps_the_pictures(cifar10: Path):
    whole = rekeyed_data.rekey(cifar10, "a key", train_images=50_000)
    original, _ = data.load(cifar10)
    assert sorted(np.bincount(whole.train[:, 0])) == [5_000] * 10
    greys = whole.train[:, 1:].reshape(-1, 3, 1024).sum(axis=1, dtype=np.int32)
    wanted = original.images.reshape(-1, 3, 1024).sum(dim=1, dtype=torch.int32).numpy()
    assert {row.tobytes() for row in greys} == {row.tobytes() for row in wanted}


def test_a_rekeyed_folder_loads_like_any_other(rekeyed, tmp_path: Path):
    rekeyed_data.write_folder(rekeyed, tmp_path / "data")
    train, test = data.load(tmp_path / "data")
    assert (len(train), len(test)) == (1000, 200)
    assert download.faults(tmp_path / "data") == []


def test_the_rubric_is_whole():
    assert sum(line.points for line in RUBRIC) == 100
    seen: set[str] = set()
    for line in RUBRIC:
        assert line.asks and line.points > 0
        assert set(line.follows) <= seen, "a line may only follow from lines above it"
        seen.add(line.id)
    assert set(MUST_PASS) <= seen


@pytest.mark.parametrize("name", ["full", "fast"])
def test_the_profiles_can_be_run(name: str):
    settings = contract.load(name)
    assert 0.1 < settings.target < 1
    assert settings.updates() > watchdog.SEPARATE_UPDATES


class Bomb:
    def __reduce__(self):
        return (Path("/tmp/grader-test-bomb").touch, ())


def as_checkpoint(state: object) -> bytes:
    content = io.BytesIO()
    torch.save(state, content)
    return content.getvalue()


def good_state(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    return ResNet9(width=16).state_dict() | changes


BAD_STATES = {
    "is not a state dict": ["weights"],
    "prefix 'module.'": {f"module.{name}": value for name, value in good_state().items()},
    "lacks classify.weight": {},
    "has an entry 'extra'": good_state(extra=torch.ones(1)),
    "is float32 (10, 3), not float32 (10, 128)": good_state(**{"classify.weight": torch.ones(10, 3)}),
    "is float16 (10, 128)": good_state(**{"classify.weight": torch.ones(10, 128, dtype=torch.float16)}),
    "not finite": good_state(**{"classify.weight": torch.full((10, 128), torch.nan)}),
    "not a state dict that loads with weights_only=True": ResNet9(width=16),
}


@pytest.mark.parametrize("message", BAD_STATES)
def test_a_bad_checkpoint_is_a_message(message: str):
    with pytest.raises(classify_images.WrongCheckpoint) as refused:
        classify_images.load(as_checkpoint(BAD_STATES[message]), width=16)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Bomb()), "model.pt is not a state dict that loads with weights_only=True"),
        (b"x" * (contract.MAX_CHECKPOINT_BYTES + 1), "model.pt holds more than 8,388,608 bytes"),
        (b"", "model.pt is not a state dict that loads with weights_only=True"),
    ],
)
def test_a_pickle_that_acts_does_not_act_and_is_a_message(content: bytes, message: str, rekeyed, tmp_path: Path):
    mark = Path("/tmp/grader-test-bomb")
    mark.unlink(missing_ok=True)
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(untrusted.UnreadableError, match=message):
        checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)
    assert not mark.exists()


def test_a_link_or_nothing_is_no_checkpoint(rekeyed, tmp_path: Path):
    with pytest.raises(untrusted.UnreadableError, match=r"model\.pt was not written"):
        checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)
    (tmp_path / "other.pt").write_bytes(as_checkpoint(good_state()))
    (tmp_path / "model.pt").symlink_to(tmp_path / "other.pt")
    with pytest.raises(untrusted.UnreadableError, match=r"model\.pt was not written"):
        checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)


def test_the_second_sandbox_measures_what_one_measures_oneself(rekeyed, tmp_path: Path):
    torch.manual_seed(0)
    net = ResNet9(width=16)
    (tmp_path / "model.pt").write_bytes(as_checkpoint(net.state_dict()))
    measured = checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)
    images = torch.from_numpy(rekeyed.secret[:, 1:].reshape(-1, 3, 32, 32).copy())
    split = data.Split("test", images, torch.from_numpy(rekeyed.secret[:, 0].astype(np.int64)))
    right = training.count_correct(net, split, torch.arange(len(split))).item()
    assert measured.secret == pytest.approx(right / len(split), abs=1e-9)
    assert measured.weights == fingerprint(net.parameters())


@pytest.mark.parametrize("answered", [b"", b"{}\n", b"[" * 10_000, b'{"error": "", "weights": 1}\n1234'])
def test_a_garbled_answer_of_the_second_sandbox_is_a_message(answered: bytes):
    with pytest.raises(run_in_sandbox.NoAnswerError, match=r"its answer is garbled|it classified"):
        checkpoint._read_answer(answered, images=3)


LINE = {"epoch": 1, "lr": 0.1, "train_loss": 2.0, "test_accuracy": 0.5, "images_per_s": 9.0, "seconds": 1.0}


def test_good_metrics_are_read(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(LINE | {"epoch": epoch}) + "\n" for epoch in (1, 2, 3)))
    assert [line.epoch for line in checkpoint.read_metrics(path)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1 is not JSON"),
        ("[" * 100_000, "line 1 is not JSON"),
        ("[1]", "line 1, content: "),
        (json.dumps(LINE | {"test_accuracy": 1.2}), "line 1, test_accuracy: input should be less than or equal to 1"),
        (json.dumps(LINE | {"test_accuracy": "0.9"}), "line 1, test_accuracy: input should be a valid number"),
        (json.dumps(LINE | {"train_loss": float("nan")}), "line 1, train_loss: input should be a finite number"),
        (json.dumps(LINE | {"epoch": 2}), "line 1 is of epoch 2, not 1"),
        ('{"epoch": 1}', "line 1, lr: field required"),
    ],
)
def test_bad_metrics_are_a_message_that_names_the_line(line: str, message: str, tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    with pytest.raises(untrusted.UnreadableError) as refused:
        checkpoint.read_metrics(tmp_path / "metrics.jsonl")
    assert message in str(refused.value)


@given(content=st.binary(max_size=400))
def test_any_bytes_as_metrics_or_observation_give_a_clear_result(content: bytes, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "metrics.jsonl"
    path.write_bytes(content)
    assert isinstance(worker_log.read_worker(path), worker_log.Worker)
    try:
        checkpoint.read_metrics(path)
    except untrusted.UnreadableError as error:
        assert str(error)


QUIET = {"lr": [0.1], "calls": 1, "local": None, "applied": None, "loss": None, "wrote": []}


def worker(start: int, updates: list[tuple[list[int], int]]) -> worker_log.Worker:
    lines = [
        worker_log.Update(update=number, images=images, weights=weights, **QUIET)
        for number, (images, weights) in enumerate(updates, start=1)
    ]
    first = worker_log.First(start=start, bytes=4, size=2, device="cpu", optimizer="SGD")
    return worker_log.Worker(first, lines)


def test_epochs_are_seen_for_what_they_are():
    sharded = [worker(1, [([0, 1], 5), ([2, 3], 6)]), worker(1, [([2, 3], 5), ([0, 1], 6)])]
    assert shard_analysis.epochs(sharded, train_images=4) == [shard_analysis.Epoch(1.0, 0.0)] * 2
    equal = [worker(1, [([0, 1], 5), ([1, 0], 6)])] * 2
    assert shard_analysis.epochs(equal, train_images=4) == [shard_analysis.Epoch(0.5, 0.5)] * 2


def test_the_first_difference_between_workers_is_found():
    one = worker(1, [([0], 5), ([1], 6), ([2], 7)])
    assert gradient_analysis.first_difference([one, one]) is None
    assert gradient_analysis.first_difference([one, worker(1, [([0], 5), ([1], 8), ([2], 7)])]) == 2
    assert gradient_analysis.first_difference([one, worker(2, [([0], 5), ([1], 6), ([2], 7)])]) == 0


def test_the_same_order_in_two_epochs_is_noticed():
    assert shard_analysis.same_order(worker(1, [([0, 1], 5), ([0, 1], 6)]), count=2)
    assert not shard_analysis.same_order(worker(1, [([0, 1], 5), ([1, 0], 6)]), count=2)


def test_a_workers_file_is_read_up_to_its_first_bad_line(tmp_path: Path):
    first = {"start": 1, "bytes": 4, "size": 4, "device": "cpu", "optimizer": "SGD"}
    update = {
        "update": 1, "lr": [0.1], "images": [1], "calls": 1, "weights": 2, "local": None, "applied": None,
        "loss": 1.5, "wrote": [],
    }  # fmt: skip
    path = tmp_path / "rank0.jsonl"
    path.write_text("\n".join(map(json.dumps, [first, update, update | {"update": 3}])))
    assert len(worker_log.read_worker(path).updates) == 1
    assert worker_log.read_worker(tmp_path / "rank1.jsonl") == worker_log.Worker()


def test_of_an_update_in_which_several_optimizers_take_part_the_last_line_counts(tmp_path: Path):
    first = {"start": 1, "bytes": 4, "size": 4, "device": "cpu", "optimizer": "SGD"}
    one = {
        "update": 1, "lr": [0.1], "images": [3], "calls": 1, "weights": 7, "local": None, "applied": None, "loss": None,
        "wrote": [],
    }  # fmt: skip
    path = tmp_path / "rank0.jsonl"
    path.write_text("\n".join(map(json.dumps, [first, one, one | {"weights": 8}, one | {"update": 2}])))
    assert [update.weights for update in worker_log.read_worker(path).updates] == [8, 7]


def test_the_cause_of_a_crash_is_found_among_the_launchers_lines():
    log = "\n".join([
        "[1]<stderr>:Traceback (most recent call last):",
        '[1]<stderr>:  File "train.py", line 9, in <module>',
        "[1]<stderr>:ZeroDivisionError: division by zero",
        "[0]<stderr>:Terminated",
        "RuntimeError: Horovod detected that one or more processes exited with non-zero status",
    ])  # fmt: skip
    assert rubric._last_error(log) == "Worker 1 said: ZeroDivisionError: division by zero"
    assert rubric._last_error("[2]<stderr>:train.py: no data folder D.") == "Worker 2 said: train.py: no data folder D."
    assert "by hand" in rubric._last_error("")


def test_a_consequence_of_a_crash_is_not_its_cause():
    shut = "[3]<stderr>:HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of ..."
    assert rubric._last_error(f"[1]<stderr>:KeyError: 'lr'\n{shut}") == "Worker 1 said: KeyError: 'lr'"
    assert rubric._last_error(shut).startswith("Worker 3 still waited for the others when one of them ended.")
    told = rubric._last_error(
        f"[1]<stderr>:    assert self._allreduce_delay[p] > 0\n[1]<stderr>:AssertionError\n{shut}"
    )
    assert "Step the optimizer that hvd.DistributedOptimizer returned" in told


def source_folder(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"main.py": ""}, "has no train.py"),
        ({"train.py": "", "data.txt": "x" * 65_537}, "more than 65,536 bytes of source"),
    ],
)
def test_a_submission_that_cannot_be_launched_is_one_line_and_exit_status_2(
    files: dict[str, str], message: str, tmp_path: Path, capsys
):
    status = main(["check", str(source_folder(tmp_path / "in", files)), "--output", str(tmp_path / "out")])
    told = capsys.readouterr().err
    assert status == 2 and told.count("\n") == 1 and message in told


def test_a_check_clears_only_what_a_check_left(tmp_path: Path):
    folders = RunPaths(tmp_path / "out")
    folders.clear()
    source_folder(folders.root, {"keep.txt": "mine", "output/model.pt": "", "report.json": "{}"})
    folders.clear()
    assert sorted(path.name for path in folders.root.iterdir()) == [".grader", "keep.txt"]


def test_a_check_removes_nothing_that_is_somebodys_own(tmp_path: Path, capsys):
    source_folder(tmp_path / "mine", {"train.py": "", "data/all.csv": "1"})
    assert main(["check", str(tmp_path / "mine"), "--output", str(tmp_path / "mine")]) == 2
    assert "data is there, and no check has left it; name another folder" in capsys.readouterr().err
    RunPaths(tmp_path / "out").clear()
    source_folder(tmp_path / "out" / "source", {"train.py": ""})
    assert main(["check", str(tmp_path / "out" / "source"), "--output", str(tmp_path / "out")]) == 2
    assert "a copy that this check would replace" in capsys.readouterr().err
    assert (tmp_path / "mine" / "data" / "all.csv").exists() and (tmp_path / "out" / "source" / "train.py").exists()


def test_a_wrong_option_is_one_line_and_exit_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["check", "somewhere", "--profile", "huge"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("grader check: argument --profile: invalid choice: 'huge'")


def test_a_report_shows_text_from_a_submission_as_text():
    row = grade.Row("begins", "unmet", 0, 5, "asks", "seen \x1b[31mred\x07 [bold]big[/]", "advice")
    shown = io.StringIO()
    result = grade.Report("sub\x1b]0;title\x07", False, 0, [row], "not isolated", None)
    terminal.show(result, Console(file=shown, width=120, force_terminal=False))
    text = shown.getvalue()
    assert "\x1b" not in text and "\x07" not in text
    assert "[bold]big[/]" in text
    assert "NOT PASSED" in text


def test_a_command_line_is_read_and_a_certificate_looked_at_without_the_slow_imports():
    names = "grader.__main__, grader.certificates.credential, cifar.download, sys"
    done = run_python("-c", f"import {names}; print({{'torch', 'matplotlib', 'nbgrader'}} & set(sys.modules))")
    assert done.stdout == "set()\n", done.stderr
