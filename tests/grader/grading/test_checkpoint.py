"""The checkpoint and the metrics that a run has written are measured."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cifar import data, training
from cifar.model import ResNet9
from cifar.support.fingerprint import fingerprint
from grader.common import contract, untrusted
from grader.grading import checkpoint
from grader.sandbox import run_in_sandbox
from grader.sandbox.bubblewrap import Bubblewrap
from tests.support.checkpoints import as_checkpoint, good_state


class Bomb:
    def __reduce__(self):
        return (Path("/tmp/grader-test-bomb").touch, ())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Bomb()), "model.pt is not a state dict that loads with weights_only=True"),
        (b"x" * (contract.MAX_CHECKPOINT_BYTES + 1), "model.pt holds more than 8,388,608 bytes"),
        (b"", "model.pt is not a state dict that loads with weights_only=True"),
    ],
)
def test_a_pickle_with_code_is_refused_and_its_code_does_not_run(content: bytes, message: str, rekeyed, tmp_path: Path):
    mark = Path("/tmp/grader-test-bomb")
    mark.unlink(missing_ok=True)
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(untrusted.UnreadableError, match=message):
        checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)
    assert not mark.exists()


def test_a_missing_checkpoint_or_a_link_is_refused(rekeyed, tmp_path: Path):
    with pytest.raises(untrusted.UnreadableError, match=r"model\.pt was not written"):
        checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)
    (tmp_path / "other.pt").write_bytes(as_checkpoint(good_state()))
    (tmp_path / "model.pt").symlink_to(tmp_path / "other.pt")
    with pytest.raises(untrusted.UnreadableError, match=r"model\.pt was not written"):
        checkpoint.measure(tmp_path / "model.pt", rekeyed, Bubblewrap)


def test_the_second_sandbox_measures_the_same_accuracy_as_a_direct_test(rekeyed, tmp_path: Path):
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
def test_any_bytes_as_metrics_give_a_clear_result(content: bytes, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "metrics.jsonl"
    path.write_bytes(content)
    try:
        checkpoint.read_metrics(path)
    except untrusted.UnreadableError as error:
        assert str(error)
