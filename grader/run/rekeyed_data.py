"""CIFAR-10 re-keyed for one grading run: the run never sees the test images that decide its grade.

A key (any text) permutes the ten class numbers and the three colour channels. It also splits the test images into a
visible part, which goes into the run's data folder, and a secret part, which stays with the grader. Weights that were
trained elsewhere, and answers learnt by heart, are worthless under another key. An honest program does not notice it.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cifar import download

VISIBLE = 1_000  # of the 10,000 test images the run may see these; the others decide its grade


@dataclass(frozen=True)
class Rekeyed:
    """CIFAR-10's records, uint8 `(N, 3073)`, after re-keying: training, visible test and secret test part."""

    train: np.ndarray
    visible: np.ndarray
    secret: np.ndarray


def rekey(source: Path, key: str, train_images: int, test_images: int = 10_000) -> Rekeyed:
    """Read CIFAR-10 from `source`, re-key it, and keep `train_images` training and `test_images` test images."""
    draw = np.random.default_rng(list(hashlib.sha256(key.encode()).digest()))
    classes = draw.permutation(10).astype(np.uint8)
    channels = draw.permutation(3)
    train, test = _read(source, download.TRAIN_FILES), _read(source, (download.TEST_FILE,))
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
    folder.mkdir(parents=True)
    parts = dict(zip(download.TRAIN_FILES, np.array_split(data.train, 5), strict=True))
    parts[download.TEST_FILE] = data.visible
    hashes = {}
    for name, records in parts.items():
        (folder / name).write_bytes(records.tobytes())
        hashes[name] = hashlib.sha256(records.tobytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({"sha256": hashes}, indent=1))
