"""Loads CIFAR-10 as tensors, and shuffles, shards, batches and augments it.

Each function works on a whole tensor of images at once, never on one image after another.
"""

import hashlib
import json
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

# These are the mean and the standard deviation of the training images' red, green and blue values in the range 0 to 1.
MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2470, 0.2435, 0.2616)
RECORD_BYTES = 1 + 3 * 32 * 32  # A record is a label of one byte, then three colours of 32x32 pixels.


@dataclass(frozen=True)
class Split:
    """The training part or the test part has uint8 images `(N, 3, 32, 32)` and int64 labels `(N,)` on one device."""

    name: str
    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return the images `(B, 3, 32, 32)` and labels `(B,)` at the int64 `indices` `(B,)`.

        Every image that a program trains on comes through this call. The call raises the audit event `cifar.batch` with
        the split's name and the indices. This is how a grader can see which images were used.
        """
        sys.audit("cifar.batch", self.name, indices)
        indices = indices.to(self.images.device)
        return self.images[indices], self.labels[indices]


def load(
    folder: Path | None = None, device: torch.device | str = "cpu", limit: int | None = None,
    test_limit: int | None = None,
) -> tuple[Split, Split]:  # fmt: skip
    """Return the training split and the test split on `device`.

    `limit` and `test_limit` are the numbers of images to keep, counted from the first one. Without a folder CIFAR-10
    comes from the user's cache, and it is downloaded if it is not there. Only the files that hold these images are
    read. A missing or corrupt file ends the program with one line that names it.
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
        if limit is None or sum(map(len, parts)) < limit:  # Few images do not need all files to be read and hashed.
            parts.append(_read_records(folder / file, hashes[file]))
    records = np.concatenate(parts)[:limit]
    labels = torch.from_numpy(records[:, 0].astype(np.int64))
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32))
    return Split(name, images.contiguous().to(device), labels.to(device))


def _read_records(path: Path, sha256: str) -> np.ndarray:
    """Return one `.bin` file as uint8 `(N, 3073)`. The bytes that are returned are the bytes that were hashed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        stop(f"cannot read {path}: {error.strerror}. To fetch it: python -m cifar.download --to {path.parent}")
    if hashlib.sha256(content).hexdigest() != sha256:
        stop(f"{path} is corrupt ({len(content):,} bytes). To mend it: python -m cifar.download --to {path.parent}")
    return np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)


def save(folder: Path, train: Split, test: Split) -> None:
    """Write data of your own as a folder that `load` reads. It has ten classes, like CIFAR-10.

    Raises FileExistsError if the folder exists, and ValueError if the images or labels have another form.
    """
    for split in (train, test):
        shape, labels = tuple(split.images.shape[1:]), split.labels
        if split.images.dtype != torch.uint8 or shape != (3, 32, 32) or len(split.images) != len(labels):
            raise ValueError(f"images must be uint8 (N, 3, 32, 32) with N labels, not {tuple(split.images.shape)}")
        if len(labels) < len(download.TRAIN_FILES) or not 0 <= int(labels.min()) <= int(labels.max()) <= 9:
            raise ValueError("there must be labels, and each must be 0 to 9")
    write_records(folder, *map(_records, (train, test)))


def _records(split: Split) -> np.ndarray:
    images = split.images.cpu().numpy().reshape(len(split), -1)
    return np.concatenate([split.labels.cpu().numpy().astype(np.uint8)[:, None], images], axis=1)


def write_records(folder: Path, train: np.ndarray, test: np.ndarray) -> None:
    """Write uint8 records `(N, 3073)` as six files, with a manifest of their hashes. The folder must be a new one."""
    folder.mkdir(parents=True)
    parts = dict(zip(download.TRAIN_FILES, np.array_split(train, len(download.TRAIN_FILES)), strict=True))
    parts[download.TEST_FILE] = test
    for name, records in parts.items():
        (folder / name).write_bytes(records.tobytes())
    hashes = {name: hashlib.sha256(records.tobytes()).hexdigest() for name, records in parts.items()}
    (folder / "manifest.json").write_text(json.dumps({"sha256": hashes}, indent=1))


def shuffle(count: int, seed: int, epoch: int) -> Tensor:
    """Return an int64 permutation `(count,)` of the numbers `0 .. count-1`.

    It depends on `seed` and `epoch` alone. So it is equal on every worker, and another one in each epoch.
    """
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 100_003 + epoch))


def shard(order: Tensor, rank: int, size: int) -> Tensor:
    """Return this worker's part of `order`: every `size`-th index from index `rank` on.

    The parts are disjoint, so the workers together use each image at most once. All parts are equally long, because a
    worker with one batch more than the others would wait for them for ever. For this, up to `size - 1` indices at the
    end of `order` are left out. They are others in each epoch, because the order changes. Batch `k` of all workers
    together holds the same images as batch `k` of one worker whose batches are `size` times larger. Raises ValueError
    unless `0 <= rank < size`.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} of {size} workers: ranks run from 0 to size - 1")
    return order[: len(order) // size * size][rank::size]


def updates_per_epoch(count: int, batch_size: int, size: int) -> int:
    """Return the number of updates in which `size` workers use `count` images once, `batch_size` images per worker."""
    return math.ceil(count // size / batch_size)


def batches(
    split: Split, indices: Tensor, batch_size: int, change: Callable[[Tensor], Tensor] = lambda images: images
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of images and labels in the order of `indices`. `change` is applied to the images of each batch.

    A batch has `batch_size` images. The last one may be smaller.
    """
    for part in indices.split(batch_size):
        images, labels = split.batch(part)
        yield change(images), labels


def augment(images: Tensor, shift: int = 2) -> Tensor:
    """Crop each image after a random shift of up to `shift` pixels in each direction, and flip about half of them.

    The input and the output are uint8 `(B, 3, 32, 32)`. The random numbers come from torch's global generator, so
    workers that are seeded differently augment differently.
    """
    cropped = crop(images, shift)
    return flip(cropped, torch.rand(len(images)) < 0.5)


def crop(images: Tensor, shift: int) -> Tensor:
    """Crop each image after a random shift of up to `shift` pixels in each direction. Reflected pixels fill its edges.

    The input and the output are uint8 `(B, 3, 32, 32)`.
    """
    count, device = len(images), images.device
    padded = F.pad(images.float(), (shift,) * 4, mode="reflect").to(torch.uint8)
    windows = padded.unfold(2, 32, 1).unfold(3, 32, 1)  # (B, 3, 2*shift+1, 2*shift+1, 32, 32), a view
    down, right = torch.randint(2 * shift + 1, (2, count)).to(device)
    return windows[torch.arange(count, device=device), :, down, right]


def flip(images: Tensor, which: Tensor) -> Tensor:
    """Exchange left and right of those images `(B, 3, 32, 32)` for which the bool `which` `(B,)` is true."""
    return torch.where(which.to(images.device).view(-1, 1, 1, 1), images.flip(-1), images)


def normalise(images: Tensor) -> Tensor:
    """Turn uint8 images `(B, 3, 32, 32)` into float32 images of about mean 0 and standard deviation 1 per channel.

    The result is in the memory format "channels last", in which convolutions are faster.
    """
    mean = torch.tensor(MEAN, device=images.device).view(1, 3, 1, 1)
    std = torch.tensor(STD, device=images.device).view(1, 3, 1, 1)
    return ((images / 255 - mean) / std).contiguous(memory_format=torch.channels_last)
