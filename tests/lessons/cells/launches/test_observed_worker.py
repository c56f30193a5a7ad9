"""A script that is observed takes its share of this machine's threads, whatever it says of its place."""

import pytest
import torch

from cifar.support.environment import cores
from lessons.cells.launches.observed_worker import use_device


@pytest.fixture
def second_of_two(monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setenv("HOROVOD_LOCAL_RANK", "1")
    monkeypatch.setenv("HOROVOD_LOCAL_SIZE", "2")
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("place", [{}, {"local_rank": 0, "local_size": 1}])
def test_a_worker_takes_its_share_of_the_threads(place: dict, second_of_two):
    assert use_device("cpu", **place).type == "cpu"
    assert torch.get_num_threads() == max(1, cores() // 2)
