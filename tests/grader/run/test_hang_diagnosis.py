"""A learner whose run hangs is told why, by the stacks that the workers wrote."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from grader.run import hang_diagnosis
from grader.sandbox.run_paths import RunPaths

OPTIMIZER = "/venv/horovod/torch/optimizer.py"
OPS = "/venv/horovod/torch/mpi_ops.py"
GRADIENTS = [
    [OPS, 9, "synchronize"],
    [OPTIMIZER, 5, "synchronize"],
    [OPTIMIZER, 7, "step"],
    ["train.py", 40, "<module>"],
]
METRIC = [[OPS, 9, "synchronize"], [OPS, 5, "allreduce"], ["/submission/source/train.py", 52, "<module>"]]
POLLED = [
    ["/cifar/workers.py", 80, "wait_for_gradients"],
    ["/cifar/training.py", 3, "train_epoch"],
    ["train.py", 40, "m"],
]
BUSY = [["train.py", 33, "<module>"]]


def described(folder: Path, stacks: dict[int, list], updates: list[int]) -> str:
    paths = RunPaths(folder)
    paths.observe.mkdir(exist_ok=True)
    for rank, stack in stacks.items():
        paths.stack(rank).write_text(json.dumps(BUSY) + "\n" + json.dumps(stack) + "\n")
    return hang_diagnosis.describe(21.4, updates, set(stacks), paths)


def test_a_worker_with_fewer_batches_is_named(tmp_path: Path):
    message = described(tmp_path, {0: GRADIENTS, 1: GRADIENTS, 2: POLLED, 3: METRIC}, [24, 24, 24, 23])
    assert message.startswith("Stopped: no update for 21 s. workers 0, 1, 2 wait for the all-reduce of the gradients")
    assert "worker 3 waits for allreduce (train.py, line 52) after update 23" in message
    assert "equally many batches" in message


def test_a_collective_that_only_one_worker_calls_is_named(tmp_path: Path):
    message = described(tmp_path, {0: METRIC, 1: GRADIENTS, 2: GRADIENTS, 3: GRADIENTS}, [5, 5, 5, 5])
    assert "worker 0 waits for allreduce (train.py, line 52) after update 5" in message
    assert "inside `if hvd.rank() == 0`?" in message


def test_a_worker_that_has_ended_is_named(tmp_path: Path):
    message = described(tmp_path, {0: METRIC, 1: METRIC, 2: METRIC}, [5, 5, 5, 5])
    assert "worker 3 has ended" in message


def test_an_endless_loop_is_named(tmp_path: Path):
    message = described(tmp_path, dict.fromkeys(range(4), BUSY), [0] * 4)
    assert "workers 0, 1, 2, 3 are in no collective (train.py, line 33) after update 0" in message
    assert "endless loop?" in message


def test_a_stack_cannot_steer_the_terminal(tmp_path: Path):
    message = described(tmp_path, {rank: [["\x1b[2J\nx.py", 3, "f\n"]] for rank in range(4)}, [1] * 4)
    assert message.isprintable()


@given(content=st.binary(max_size=300))
def test_any_bytes_in_a_stack_file_give_a_message_of_one_line(content: bytes, tmp_path_factory):
    paths = RunPaths(tmp_path_factory.getbasetemp())
    paths.observe.mkdir(exist_ok=True)
    paths.stack(0).write_bytes(content + b"\n")
    assert "\n" not in hang_diagnosis.describe(20, [1] * 4, {0, 1, 2, 3}, paths)
