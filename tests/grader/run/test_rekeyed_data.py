"""The data of a run depends on a key. The run gets no image that its checkpoint is tested on."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cifar import data, download
from grader.run import rekeyed_data


def test_the_key_decides_the_data(rekeyed, cifar10: Path):
    again = rekeyed_data.rekey(cifar10, "a key", train_images=1000, test_images=2000)
    other = rekeyed_data.rekey(cifar10, "another key", train_images=1000, test_images=2000)
    assert np.array_equal(rekeyed.secret, again.secret)
    assert np.array_equal(rekeyed.train, again.train)
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


def test_data_of_ones_own_must_be_whole_and_have_enough_images(cifar10: Path, tmp_path: Path):
    train, test = (data.Split(one.name, one.images[:100], one.labels[:100]) for one in data.load(cifar10))
    data.save(tmp_path / "own", train, test)
    assert rekeyed_data.folder(tmp_path / "own") == tmp_path / "own"
    with pytest.raises(rekeyed_data.DataError, match="has 100 training and 100 test images; this profile needs 1,000"):
        rekeyed_data.rekey(tmp_path / "own", "a key", train_images=1000, test_images=100)
    (tmp_path / "own" / download.TEST_FILE).write_bytes(b"")
    with pytest.raises(rekeyed_data.DataError, match=r"is no data folder, .*: test_batch\.bin is corrupt"):
        rekeyed_data.folder(tmp_path / "own")
    with pytest.raises(rekeyed_data.DataError, match=r"manifest\.json is missing"):
        rekeyed_data.folder(tmp_path)
