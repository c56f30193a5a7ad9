"""A worker keeps the weights of its last updates, and shows them when it is asked."""

import hashlib
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from grader.common.atomic_write import write_whole
from grader.run.hooks.grader_observer import weights_keeper
from grader.run.hooks.grader_observer.log_format import (
    DONE_FILE,
    KEPT_UPDATES,
    NETWORK_FILE,
    answer_file,
    question_file,
)
from grader.run.hooks.grader_observer.weights_keeper import WeightsKeeper
from grader.sandbox.run_paths import RunPaths
from tests.conftest import until

SHAPES = [[2, 3], [2]]


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    made = RunPaths(tmp_path)
    for folder in made.parts:
        folder.mkdir()
    (made.challenges / NETWORK_FILE).write_text(json.dumps(SHAPES))
    return made


@pytest.fixture
def keeper(paths: RunPaths) -> WeightsKeeper:
    return WeightsKeeper(str(paths.observe), 1)


def stepped(net: torch.nn.Module) -> dict[int, torch.Tensor]:
    return {id(parameter): parameter for parameter in net.parameters()}


def vector(net: torch.nn.Module) -> np.ndarray:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()]).numpy()


def test_the_network_of_the_wanted_shape_is_found_under_wrappers_and_beside_others(keeper: WeightsKeeper):
    net, other = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
    wrapper = torch.nn.Sequential(net)
    for module in (other, wrapper, net):
        keeper.note_module(module)
    assert [id(each) for each in keeper.parameters(stepped(net))] == [id(each) for each in net.parameters()]
    assert keeper.parameters(stepped(other)) is None


def test_of_two_networks_of_that_shape_the_one_that_was_changed_counts(keeper: WeightsKeeper):
    first, second = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    keeper.note_module(first)
    keeper.note_module(second)
    assert keeper.parameters(stepped(second))[0] is second.weight


def test_a_network_that_is_never_called_is_known_by_its_optimizers_weights(keeper: WeightsKeeper):
    net, other = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
    assert [id(each) for each in keeper.parameters(stepped(net))] == [id(each) for each in net.parameters()]
    assert keeper.parameters(stepped(other)) is None


def test_the_way_of_a_step_and_the_way_between_two_steps_are_told_apart(keeper: WeightsKeeper):
    net = torch.nn.Linear(3, 2)
    weights = list(net.parameters())
    keeper.keep(0, weights)
    for update in (1, 2):
        keeper.note_before(weights)
        with torch.no_grad():
            net.bias += torch.tensor([3.0, 4.0])
        keeper.keep(update, weights)
        told = keeper.lengths(update)
        assert told == pytest.approx({"step": 5.0, "moved": 0.0 if update == 1 else 2.0}, abs=1e-4)
        net.bias.data[0] += 2.0  # `data` leaves no trace in PyTorch's count of changes
    assert keeper.lengths(7) == {"step": None, "moved": None}


def test_the_commitment_is_the_hash_of_the_weights_in_their_order(keeper: WeightsKeeper):
    net = torch.nn.Linear(3, 2)
    assert keeper.keep(0, list(net.parameters())) == hashlib.sha256(vector(net).data).hexdigest()
    assert keeper.keep(1, None) is None


def test_a_question_is_answered_with_the_weights_before_and_after(keeper: WeightsKeeper, paths: RunPaths):
    net, shown = torch.nn.Linear(3, 2), []
    for update in range(4):
        with torch.no_grad():
            net.weight += 1
        keeper.keep(update, list(net.parameters()))
        shown.append(vector(net).tobytes())
    (paths.challenges / question_file(1, 0)).write_text("2")
    (paths.challenges / question_file(1, 1)).write_text("3")
    (paths.challenges / question_file(0, 2)).write_text("3")  # of another worker
    keeper.answer()
    answers = {path.name: path.read_bytes() for path in paths.observe.iterdir()}
    assert answers == {answer_file(1, 0): shown[1] + shown[2], answer_file(1, 1): shown[2] + shown[3]}


def test_weights_that_are_not_kept_any_more_give_an_empty_answer(keeper: WeightsKeeper, paths: RunPaths):
    net = torch.nn.Linear(3, 2)
    for update in range(KEPT_UPDATES + 2):
        keeper.keep(update, list(net.parameters()))
    assert len(keeper.kept) == KEPT_UPDATES
    (paths.challenges / question_file(1, 0)).write_text("2")
    keeper.answer()
    assert (paths.observe / answer_file(1, 0)).read_bytes() == b""


def test_a_worker_answers_at_its_end_until_there_are_no_more_questions(keeper: WeightsKeeper, paths: RunPaths):
    net = torch.nn.Linear(3, 2)
    keeper.keep(0, list(net.parameters()))
    keeper.keep(1, list(net.parameters()))
    (paths.challenges / question_file(1, 0)).write_text("1")
    (paths.challenges / DONE_FILE).touch()
    keeper.answer()
    keeper.linger()
    assert (paths.observe / answer_file(1, 0)).exists()


def test_a_worker_waits_for_slow_questions_each_time_anew(keeper: WeightsKeeper, paths: RunPaths, monkeypatch):
    monkeypatch.setattr(weights_keeper, "LINGER_SECONDS", 5)
    net = torch.nn.Linear(3, 2)
    for update in range(4):
        keeper.keep(update, list(net.parameters()))
    ending = threading.Thread(target=keeper.linger)
    ending.start()
    for number in range(3):
        time.sleep(2)
        write_whole(paths.challenges / question_file(1, number), f"{number + 1}")
    until((paths.observe / answer_file(1, 2)).exists, 20)
    (paths.challenges / DONE_FILE).touch()
    ending.join(20)
    assert not ending.is_alive()


def test_where_nobody_asks_nothing_is_kept(tmp_path: Path):
    (tmp_path / "observe").mkdir()
    keeper = WeightsKeeper(str(tmp_path / "observe"), 0)
    net = torch.nn.Linear(3, 2)
    keeper.note_module(net)
    assert keeper.parameters(stepped(net)) is None
    keeper.linger()  # at once
