"""CIFAR-10 for experiments. Each process loads it once, onto the device that the settings name."""

from functools import lru_cache

import torch

from benchmarks.experiment.claim import Settings
from cifar.data import Split, load
from cifar.workers import use_device


def data(settings: Settings) -> tuple[Split, Split]:
    """The first `images` of the training part and the first `test_images` of the test part.

    Where one of the two is not among the settings, all images of that part are returned.
    """
    train, test = _all(settings.get("device", "auto"))
    return first(train, settings.get("images")), first(test, settings.get("test_images"))


@lru_cache(1)
def _all(device: str) -> tuple[Split, Split]:
    return load(device=use_device(device))


def first(split: Split, count: int | None) -> Split:
    """The first `count` images of a split."""
    return Split(split.name, split.images[:count], split.labels[:count])


def subset(split: Split, indices: torch.Tensor) -> Split:
    """The images at `indices`."""
    return Split(split.name, split.images[indices], split.labels[indices])
