"""Runs a learner's script on one worker, and writes what it did to a file.

python -m lessons.cells.launches.observed_worker FOLDER SCRIPT ARGUMENT...

The file is FOLDER/RANK.json. It is written even if the script fails. Each worker gets an output folder of its own, so
workers that all write do not disturb each other.
"""

import json
import os
import runpy
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import horovod.torch as hvd
import torch

from cifar import training, workers
from cifar.support.fingerprint import fingerprint


@dataclass
class Observed:
    """What one worker did. Hashes are those of its weights. Images are the indices that it used, a list per epoch."""

    initialised: bool = False
    seed: int = 0  # that of PyTorch's random numbers at the first epoch
    broadcasts: int = 0
    start_hash: int = 0
    hashes: list[int] = field(default_factory=list)  # after each epoch
    images: list[list[int]] = field(default_factory=list)
    test_images: list[int] = field(default_factory=list)  # at the last test
    correct: int = 0  # of these
    files: list[str] = field(default_factory=list)

    def hook(self, event: str, arguments: tuple) -> None:
        """An audit hook. It records the images used, and the files that are opened for writing."""
        if event == "cifar.batch":
            split, indices = arguments[:2]
            used = self.images[-1] if split == "train" and self.images else self.test_images
            if split != "train" or self.images:
                used.extend(indices.tolist())
        elif event == "open" and str(arguments[1] or "")[:1] in ("w", "a", "x"):
            self.files.append(Path(str(arguments[0])).name)

    def train_epoch(self, net, *arguments, original: Callable = training.train_epoch, **options):
        """Call `cifar.training.train_epoch`, and record the weights before the first and after each epoch."""
        if not self.hashes:
            self.start_hash, self.seed = fingerprint(net.parameters()), torch.initial_seed()
        self.images.append([])
        loss = original(net, *arguments, **options)
        self.hashes.append(fingerprint(net.parameters()))
        return loss

    def count_correct(self, *arguments, original: Callable = training.count_correct, **options):
        """Call `cifar.training.count_correct`, and record which images were counted, and the number."""
        self.test_images = []
        correct = original(*arguments, **options)
        self.correct = int(correct)
        return correct

    def broadcast(self, *arguments, original: Callable = hvd.broadcast_parameters, **options):
        """Call `hvd.broadcast_parameters`, and count the calls."""
        self.broadcasts += 1
        return original(*arguments, **options)


def use_device(
    wanted: str, local_rank: int = 0, local_size: int = 1, original: Callable = workers.use_device
) -> torch.device:  # fmt: skip
    """Call `cifar.workers.use_device` with this worker's place on the machine, whatever the script says of it.

    A script of one worker takes all threads. Four such scripts at once would wait for each other most of the time.
    """
    return original(wanted, int(os.environ["HOROVOD_LOCAL_RANK"]), int(os.environ["HOROVOD_LOCAL_SIZE"]))


def main() -> None:
    """Run the script, and write what was observed."""
    folder, script, *arguments = sys.argv[1:]
    rank, seen = os.environ["HOROVOD_RANK"], Observed()
    sys.addaudithook(seen.hook)
    training.train_epoch, training.count_correct = seen.train_epoch, seen.count_correct
    hvd.broadcast_parameters, workers.use_device = seen.broadcast, use_device
    sys.argv = [script, *arguments, "--output-dir", str(Path(folder) / f"out-{rank}")]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        seen.initialised = bool(hvd.is_initialized())
        (Path(folder) / f"{rank}.json").write_text(json.dumps(asdict(seen)))


if __name__ == "__main__":
    main()
