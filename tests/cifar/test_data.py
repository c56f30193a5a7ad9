"""CIFAR-10 is loaded as tensors, and shuffled, sharded, divided into batches and augmented."""

import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cifar import data


@pytest.fixture(scope="module")
def splits(cifar10: Path) -> tuple[data.Split, data.Split]:
    return data.load(cifar10)


def test_cifar10_loads_as_uint8_tensors_with_equally_many_images_a_class(splits):
    train, test = splits
    assert train.images.shape == (50_000, 3, 32, 32) and train.images.dtype == torch.uint8
    assert test.images.shape == (10_000, 3, 32, 32)
    assert torch.bincount(train.labels).tolist() == [5_000] * 10
    assert torch.bincount(test.labels).tolist() == [1_000] * 10


def test_data_of_ones_own_load_like_cifar10(splits, tmp_path: Path):
    train, test = (data.Split(one.name, one.images[:60].flip(3), one.labels[:60]) for one in splits)
    data.save(tmp_path / "own", train, test)
    again = data.load(tmp_path / "own")
    for saved, loaded in zip((train, test), again, strict=True):
        assert torch.equal(saved.images, loaded.images) and torch.equal(saved.labels, loaded.labels)
    with pytest.raises(FileExistsError):
        data.save(tmp_path / "own", train, test)


@pytest.mark.parametrize("wrong", ["float images", "another size", "label 10", "no image"])
def test_data_in_another_form_are_refused_and_nothing_is_written(splits, tmp_path: Path, wrong: str):
    images, labels = splits[0].images[:60], splits[0].labels[:60]
    form = {"float images": (images.float(), labels), "another size": (images[..., :28], labels)}
    form |= {"label 10": (images, labels + 10), "no image": (images[:0], labels[:0])}
    with pytest.raises(ValueError, match=r"images must be uint8|each must be 0 to 9"):
        data.save(tmp_path / "own", data.Split("train", *form[wrong]), splits[1])
    assert not (tmp_path / "own").exists()


def test_the_normalisation_constants_are_those_of_the_training_images(splits):
    images = splits[0].images.transpose(0, 1).reshape(3, -1)
    mean = torch.stack([channel.float().mean() for channel in images]) / 255
    std = torch.stack([channel.float().std() for channel in images]) / 255
    assert torch.allclose(mean, torch.tensor(data.MEAN), atol=1e-4)
    assert torch.allclose(std, torch.tensor(data.STD), atol=1e-4)


def test_a_limit_keeps_the_first_images(splits, cifar10: Path):
    train, _ = data.load(cifar10, limit=100)
    assert torch.equal(train.images, splits[0].images[:100])


@given(count=st.integers(1, 500), size=st.integers(1, 9), seed=st.integers(0, 99), epoch=st.integers(0, 99))
def test_shards_are_disjoint_equal_and_leave_out_less_than_one_image_a_worker(count, size, seed, epoch):
    order = data.shuffle(count, seed, epoch)
    shards = [data.shard(order, rank, size) for rank in range(size)]
    used = torch.cat(shards).tolist()
    assert len({len(shard) for shard in shards}) == 1
    assert len(set(used)) == len(used) == count // size * size


@given(size=st.integers(1, 8), batch_size=st.integers(1, 7), batches=st.integers(1, 5))
def test_batch_k_of_all_workers_is_batch_k_of_one_worker_with_a_larger_batch(size, batch_size, batches):
    order = data.shuffle(size * batch_size * batches, seed=1, epoch=2)
    parts = [data.shard(order, rank, size).split(batch_size) for rank in range(size)]
    for number, whole in enumerate(order.split(size * batch_size)):
        together = torch.cat([part[number] for part in parts])
        assert sorted(together.tolist()) == sorted(whole.tolist())


@given(count=st.integers(1, 10_000), size=st.integers(1, 9), batch_size=st.integers(1, 600))
def test_updates_per_epoch_counts_the_batches_of_a_shard(count, size, batch_size):
    shard = data.shard(torch.arange(count), 0, size)
    expected = len([part for part in shard.split(batch_size) if len(part)])
    assert data.updates_per_epoch(count, batch_size, size) == expected


def test_a_shuffle_is_equal_for_equal_seeds_and_new_each_epoch():
    assert torch.equal(data.shuffle(1000, 3, 5), data.shuffle(1000, 3, 5))
    assert not torch.equal(data.shuffle(1000, 3, 5), data.shuffle(1000, 3, 6))
    assert not torch.equal(data.shuffle(1000, 3, 5), data.shuffle(1000, 4, 5))


@pytest.mark.parametrize("rank", [-1, 4])
def test_a_rank_out_of_range_is_refused(rank: int):
    with pytest.raises(ValueError, match="ranks run from 0 to size - 1"):
        data.shard(torch.arange(8), rank, 4)


def test_augmented_images_are_crops_of_the_padded_image_flipped_or_not(splits):
    images = splits[0].images[:200]
    torch.manual_seed(0)
    augmented = data.augment(images, shift=2)
    padded = torch.nn.functional.pad(images.float(), (2,) * 4, mode="reflect").to(torch.uint8)
    mirrored = 0
    for number, image in enumerate(augmented):
        windows = padded[number].unfold(1, 32, 1).unfold(2, 32, 1).permute(1, 2, 0, 3, 4).reshape(25, 3, 32, 32)
        straight = (windows == image).flatten(1).all(1).any()
        mirror = (windows == image.flip(-1)).flatten(1).all(1).any()
        assert straight or mirror
        mirrored += int(mirror and not straight)
    assert 70 < mirrored < 130  # Half of the 200 images are 100, and 30 is more than 4 standard deviations.


def test_every_batch_raises_an_audit_event_that_names_its_images(splits):
    seen = []
    sys.addaudithook(lambda event, args: seen.append((args[0], args[1].tolist())) if event == "cifar.batch" else None)
    list(data.batches(splits[0], torch.tensor([5, 3, 8]), batch_size=2))
    splits[1].batch(torch.tensor([1]))
    assert seen == [("train", [5, 3]), ("train", [8]), ("test", [1])]
