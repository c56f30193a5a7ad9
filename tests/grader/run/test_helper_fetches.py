"""A worker learns which images its helper processes fetch, in the order in which it uses them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from grader.run.hooks.grader_observer.helper_fetches import HelperFetches


@pytest.fixture
def fetches(tmp_path: Path) -> HelperFetches:
    return HelperFetches(str(tmp_path), 0)


def helper(folder: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> HelperFetches:
    """Return what helper `number` of a DataLoader with two helpers writes with."""
    info = SimpleNamespace(id=number, num_workers=2, seed=70 + number)
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: info)
    return HelperFetches(str(folder), 0)


def test_batches_come_in_the_order_of_their_use_whichever_helper_is_faster(
    fetches: HelperFetches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    one = helper(tmp_path, 1, monkeypatch)
    one.add("train", True, [1])
    one.add("train", True, [3])
    assert fetches.take() == []
    zero = helper(tmp_path, 0, monkeypatch)
    zero.add("train", True, [0])
    assert [fetch.indices for fetch in fetches.take()] == [[0], [1]]
    zero.add("train", True, [2])
    assert [fetch.indices for fetch in fetches.take()] == [[2], [3]]
    assert fetches.take() == []


class OneByOne(Dataset):
    """A data set whose images a helper fetches one by one."""

    def __init__(self, fetches: HelperFetches):
        self.fetches = fetches

    def __len__(self) -> int:
        return 14

    def __getitem__(self, index: int) -> int:
        self.fetches.add("train", True, [index])
        return index


@pytest.mark.parametrize("alive", [False, True])
def test_images_that_helpers_fetch_one_by_one_are_those_of_the_batches_in_every_epoch(
    fetches: HelperFetches, alive: bool
):
    loader = DataLoader(OneByOne(fetches), batch_size=3, num_workers=2, shuffle=True, persistent_workers=alive)
    for _ in range(3):
        used = [batch.tolist() for batch in loader]  # five batches, the last one smaller
        assert [fetch.indices for fetch in fetches.take()] == used


def test_a_process_that_is_no_helper_of_a_loader_counts_too(fetches: HelperFetches):
    child = os.fork()
    if child == 0:
        fetches.add("test", False, [5, 6])
        os._exit(0 if fetches.in_helper() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and not fetches.in_helper()
    (fetch,) = fetches.take()
    assert (fetch.name, fetch.with_gradients, fetch.indices) == ("test", False, [5, 6])
