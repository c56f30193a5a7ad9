"""CIFAR-10 as tensors: load, shuffle, shard, batch, augment. Whole tensors at a time, never image by image."""

import hashlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cifar import download
from cifar.support.environment import stop

MEAN = (0.4914, 0.4822, 0.4465)  # of the training images, a channel each, in units of the full range
STD = (0.2470, 0.2435, 0.2616)
RECORD_BYTES = 1 + 3 * 32 * 32


@dataclass(frozen=True)
class Split:
    """The training or the test part: uint8 images `(N, 3, 32, 32)` and int64 labels `(N,)` on one device."""

    name: str
    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Images `(B, 3, 32, 32)` and labels `(B,)` at int64 `indices` `(B,)`.

        Every image that a program trains on comes through this call, which raises the audit event `cifar.batch`
        (split's name, indices): so a grader can see which images were used.
        """
        sys.audit("cifar.batch", self.name, indices)
        indices = indices.to(self.images.device)
        return self.images[indices], self.labels[indices]


def load(
    folder: Path | None = None, device: torch.device | str = "cpu", limit: int | None = None,
    test_limit: int | None = None,
) -> tuple[Split, Split]:  # fmt: skip
    """The training and the test split on `device`; the limits keep the first so many images of each.

    Without a folder CIFAR-10 comes from the user's cache, fetched if need be. Only the files that hold these images are
    read; each must be right: a missing or corrupt one ends the program with one line that names it.
    """
    folder = Path(folder) if folder else download.at_hand()
    if not folder.is_dir():
        stop(f"no data folder {folder}. Leave --data-dir out, or run: python -m cifar.download --to {folder}")
    hashes = download.expected_hashes(folder)
    train = _read_split("train", folder, hashes, download.TRAIN_FILES, device, limit)
    return train, _read_split("test", folder, hashes, (download.TEST_FILE,), device, test_limit)


def _read_split(
    name: str, folder: Path, hashes: dict[str, str], files: tuple[str, ...], device: torch.device | str,
    limit: int | None = None,
) -> Split:  # fmt: skip
    parts = []
    for file in files:
        if limit is None or sum(map(len, parts)) < limit:  # a worker that needs few images need not read and hash all
            parts.append(_read_records(folder / file, hashes[file]))
    records = np.concatenate(parts)[:limit]
    labels = torch.from_numpy(records[:, 0].astype(np.int64))
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32))
    return Split(name, images.contiguous().to(device), labels.to(device))


def _read_records(path: Path, sha256: str) -> np.ndarray:
    """One `.bin` file as uint8 `(N, 3073)`, checked: the bytes that are used are the bytes that were hashed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        stop(f"cannot read {path}: {error.strerror}. To fetch it: python -m cifar.download --to {path.parent}")
    if hashlib.sha256(content).hexdigest() != sha256:
        stop(f"{path} is corrupt ({len(content):,} bytes). To mend it: python -m cifar.download --to {path.parent}")
    return np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)


def shuffle(count: int, seed: int, epoch: int) -> Tensor:
    """A permutation of `0 .. count-1`, int64: equal on every worker for the same seed and epoch, new each epoch."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 100_003 + epoch))


def shard(order: Tensor, rank: int, size: int) -> Tensor:
    """This worker's part of `order`: every `size`-th index from `rank` on, equally many on each worker.

    Disjoint, so that together the workers use each image once. Up to `size - 1` indices at the end are left out,
    other ones each epoch: a worker with one batch more than the rest would wait for them for ever.
    Batch `k` of all workers together holds the same images as batch `k` of one worker with a `size` times larger batch.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} of {size} workers: ranks run from 0 to size - 1")
    return order[: len(order) // size * size][rank::size]


def updates_per_epoch(count: int, batch_size: int, size: int) -> int:
    """Updates it takes `size` workers with `batch_size` images each to use `count` images once."""
    return math.ceil(count // size / batch_size)


def batches(
    split: Split, indices: Tensor, batch_size: int, change: Callable[[Tensor], Tensor] = lambda images: images
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of `batch_size` (the last may be smaller) in the order of `indices`, their images changed by `change`."""
    for part in indices.split(batch_size):
        images, labels = split.batch(part)
        yield change(images), labels


def augment(images: Tensor, shift: int = 2) -> Tensor:
    """Crop each image at random, shifted by up to `shift` pixels each way, and flip half of them.

    Images are uint8 `(B, 3, 32, 32)`, in and out. The random numbers come from torch's global generator, so workers
    that are seeded differently augment differently.
    """
    cropped = crop(images, shift)
    return flip(cropped, torch.rand(len(images)) < 0.5)


def crop(images: Tensor, shift: int) -> Tensor:
    """Crop each image after a random shift of up to `shift` pixels each way. Reflected pixels fill its edges."""
    count, device = len(images), images.device
    padded = F.pad(images.float(), (shift,) * 4, mode="reflect").to(torch.uint8)
    windows = padded.unfold(2, 32, 1).unfold(3, 32, 1)  # (B, 3, 2*shift+1, 2*shift+1, 32, 32), a view
    down, right = torch.randint(2 * shift + 1, (2, count)).to(device)
    return windows[torch.arange(count, device=device), :, down, right]


def flip(images: Tensor, which: Tensor) -> Tensor:
    """Exchange left and right of those images `(B, 3, 32, 32)` for which the bool `which` `(B,)` is true."""
    return torch.where(which.to(images.device).view(-1, 1, 1, 1), images.flip(-1), images)


def normalise(images: Tensor) -> Tensor:
    """uint8 `(B, 3, 32, 32)` to float32 of mean 0 and deviation 1 a channel, channels last (faster convolutions)."""
    mean = torch.tensor(MEAN, device=images.device).view(1, 3, 1, 1)
    std = torch.tensor(STD, device=images.device).view(1, 3, 1, 1)
    return ((images / 255 - mean) / std).contiguous(memory_format=torch.channels_last)
