"""CIFAR-10 re-keyed for one grading run: the run never sees the test images that decide its grade.

A key (any text) permutes the ten class numbers and the three colour channels. It also splits the test images into a
visible part, which goes into the run's data folder, and a secret part, which stays with the grader. Weights that were
trained elsewhere, and answers learnt by heart, are worthless under another key. An honest program does not notice it.

The data may be one's own, in the form of CIFAR-10.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cifar import download
from cifar.data import write_records
from grader.common.errors import GraderError

VISIBLE = 1_000  # of the 10,000 test images the run may see these; the others decide its grade


@dataclass(frozen=True)
class Rekeyed:
    """CIFAR-10's records, uint8 `(N, 3073)`, after re-keying: training, visible test and secret test part."""

    train: np.ndarray
    visible: np.ndarray
    secret: np.ndarray


class DataError(GraderError):
    """The data cannot be used. The message is one line."""


def folder(own: Path | None) -> Path:
    """Return the folder with the data: CIFAR-10's, which is fetched if it is not there, or one's own.

    Raises DataError if one's own is not complete. `cifar.data.save` writes such a folder.
    """
    if own is None:
        return download.fetch()
    wrong = download.faults(own) if (own / "manifest.json").is_file() else ["manifest.json is missing"]
    if wrong:
        raise DataError(f"{own} is no data folder, which cifar.data.save writes: {'; '.join(wrong)}")
    return own


def rekey(source: Path, key: str, train_images: int, test_images: int = 10_000) -> Rekeyed:
    """Read the data in `source`, re-key it, and keep `train_images` training and `test_images` test images.

    Raises DataError if there are fewer images.
    """
    draw = np.random.default_rng(list(hashlib.sha256(key.encode()).digest()))
    classes = draw.permutation(10).astype(np.uint8)
    channels = draw.permutation(3)
    train, test = _read(source, download.TRAIN_FILES), _read(source, (download.TEST_FILE,))
    if len(train) < train_images or len(test) < test_images:
        raise DataError(
            f"{source} has {len(train):,} training and {len(test):,} test images; "
            f"this profile needs {train_images:,} and {test_images:,}"
        )
    test = _permute(test[draw.permutation(len(test))[:test_images]], classes, channels)
    train = _permute(train[draw.permutation(len(train))[:train_images]], classes, channels)
    visible = VISIBLE * test_images // 10_000
    return Rekeyed(train, test[:visible], test[visible:])


def _read(source: Path, names: tuple[str, ...]) -> np.ndarray:
    return np.concatenate([np.fromfile(source / name, np.uint8).reshape(-1, 3073) for name in names])


def _permute(records: np.ndarray, classes: np.ndarray, channels: np.ndarray) -> np.ndarray:
    images = records[:, 1:].reshape(-1, 3, 1024)[:, channels].reshape(-1, 3072)
    return np.concatenate([classes[records[:, :1]], images], axis=1)


def write_folder(data: Rekeyed, folder: Path) -> None:
    """Write the training and the visible test part as a data folder of six files with its own manifest."""
    write_records(folder, data.train, data.visible)
