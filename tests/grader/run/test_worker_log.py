"""The learner's program may have written a worker's log itself, so the grader refuses what cannot be right."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.run.hooks.grader_observer.log_format import FROZEN, PROJECTIONS
from grader.run.worker_log import Worker, ended, last_updates, read_worker

FIRST = {"start": 1, "bytes": 4, "size": 4, "device": "cpu", "optimizer": "SGD", "commitment": "a" * 64}
UPDATE = {
    "update": 1, "lr": [0.1], "images": [0, 1], "calls": 1, "test_images": 0, "weights": 2, "local": None,
    "applied": [0.5] * PROJECTIONS, "loss": 1.5, "wrote": [], "commitment": "b" * 64, "network": [0, FROZEN],
    "step": 0.5, "moved": 0.0,
}  # fmt: skip
END = {"end": 1, "wrote": ["model.pt"]}


def read(folder: Path, *lines: dict) -> Worker:
    (folder / "rank0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_worker(folder / "rank0.jsonl")


def test_a_log_within_the_limits_is_read_to_its_end(tmp_path: Path):
    worker = read(tmp_path, FIRST, UPDATE, END)
    assert vars(worker.first) == FIRST
    assert [vars(update) for update in worker.updates] == [UPDATE]
    assert vars(worker.end) == END


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": -1}, {"size": 0}, {"device": "c" * 41}, {"optimizer": "S" * 81}, {"start": "1"}, {"start": 1.0},
        {"size": True}, {"device": None}, {"commitment": 1}, {"commitment": "a" * 65},
    ],
)  # fmt: skip
def test_a_first_line_that_cannot_be_true_leaves_the_worker_empty(change: dict, tmp_path: Path):
    assert read(tmp_path, FIRST | change, UPDATE) == Worker()


@pytest.mark.parametrize(
    "change",
    [
        {"update": 0}, {"update": 2}, {"images": [-1]}, {"images": ["1"]}, {"calls": -1}, {"lr": None}, {"lr": ["0.1"]},
        {"test_images": -1}, {"local": ["0"]}, {"applied": 1.0}, {"loss": "1"}, {"weights": 0.5}, {"wrote": [1]},
        {"wrote": "model.pt"}, {"commitment": "b" * 65}, {"network": [FROZEN - 1]}, {"network": "01"},
        {"step": "1"}, {"moved": [0.5]},
    ],
)  # fmt: skip
def test_an_update_that_cannot_be_true_ends_the_log(change: dict, tmp_path: Path):
    worker = read(tmp_path, FIRST, UPDATE | change, UPDATE, END)
    assert worker.updates == []
    assert worker.end is None


@pytest.mark.parametrize("change", [{"end": -1}, {"end": "1"}, {"wrote": None}])
def test_an_end_that_cannot_be_true_is_no_end(change: dict, tmp_path: Path):
    worker = read(tmp_path, FIRST, UPDATE, END | change)
    assert len(worker.updates) == 1
    assert worker.end is None


def test_a_log_is_read_up_to_its_first_bad_line(tmp_path: Path):
    assert len(read(tmp_path, FIRST, UPDATE, UPDATE | {"update": 3}).updates) == 1


def test_a_worker_that_left_no_log_is_empty(tmp_path: Path):
    assert read_worker(tmp_path / "rank1.jsonl") == Worker()


def test_the_last_line_of_an_update_with_several_optimizers_counts(tmp_path: Path):
    lines = [UPDATE | {"weights": 7}, UPDATE | {"weights": 8}, UPDATE | {"update": 2, "weights": 7}]
    worker = read(tmp_path, FIRST, *lines)
    assert [update.weights for update in worker.updates] == [8, 7]


def test_the_last_updates_of_a_log_are_read_by_number(tmp_path: Path):
    lines = [UPDATE | {"update": number, "weights": number} for number in (1, 2, 3, 3)]
    read(tmp_path, FIRST, *lines[:3], lines[3] | {"weights": 30})
    assert {number: line.weights for number, line in last_updates(tmp_path / "rank0.jsonl", 2).items()} == {2: 2, 3: 30}


def test_a_log_has_ended_with_its_last_whole_line(tmp_path: Path):
    read(tmp_path, FIRST, UPDATE)
    assert not ended(tmp_path / "rank0.jsonl")
    read(tmp_path, FIRST, UPDATE, END)
    assert ended(tmp_path / "rank0.jsonl")
    assert not ended(tmp_path / "rank1.jsonl")


@given(content=st.binary(max_size=400))
def test_any_bytes_as_a_log_are_read(content: bytes, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "rank0.jsonl"
    path.write_bytes(content)
    assert isinstance(read_worker(path), Worker)
    assert last_updates(path, 5) == {} or b"update" in content
    assert ended(path) in (True, False)
