"""CIFAR-10 for experiments: loaded once a process, on the device that the settings ask for."""

from functools import lru_cache

import torch

from benchmarks.claim import Settings
from cifar.data import Split, load
from cifar.workers import use_device


def data(settings: Settings, test_images: int | None = None) -> tuple[Split, Split]:
    """Training part (`images` of the settings, all without) and test part (`test_images` of the settings, all without)."""
    train, test = _all(settings.get("device", "auto"))
    return first(train, settings.get("images")), first(test, test_images or settings.get("test_images"))


@lru_cache(1)
def _all(device: str) -> tuple[Split, Split]:
    return load(device=use_device(device))


def first(split: Split, count: int | None) -> Split:
    """The first `count` images of a split."""
    return Split(split.name, split.images[:count], split.labels[:count])


def subset(split: Split, indices: torch.Tensor) -> Split:
    """The images at `indices`."""
    return Split(split.name, split.images[indices], split.labels[indices])
