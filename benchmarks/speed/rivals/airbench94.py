"""Measures the time of airbench94.

`python -m benchmarks.speed.rivals.airbench94 SEED` prints accuracy, seconds and images/s as JSON.

It needs a GPU and the packages `airbench` and `torchvision`. It uses the course's copy of CIFAR-10, which is written in
airbench's own file format first.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import torch

from cifar.data import Split, load
from cifar.support.environment import stop


def keep(split: Split, path: Path) -> None:
    """Write a split in airbench's format: uint8 images `(N, 32, 32, 3)`, labels `(N,)`, and no class names."""
    torch.save({"images": split.images.permute(0, 2, 3, 1), "labels": split.labels, "classes": []}, path)


def measured(seed: int) -> dict[str, float]:
    """Measure one training run, after a run that warms the card up.

    The data are on the card before the clock starts.
    """
    from airbench import CifarLoader, evaluate, train94
    from airbench.lib_airbench94 import hyp

    batch_size, views = hyp["opt"]["batch_size"], hyp["net"]["tta_level"]
    train = CifarLoader("cifar10", train=True, batch_size=batch_size, aug=hyp["aug"], altflip=True)
    test = CifarLoader("cifar10", train=False, batch_size=2000)
    train94(train, epochs=1, verbose=False)
    torch.manual_seed(seed)
    torch.cuda.synchronize()
    started = time.perf_counter()
    net = train94(train, verbose=False)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    accuracy = evaluate(net, test, tta_level=views)
    images = hyp["opt"]["train_epochs"] * len(train) * batch_size
    return {"test_accuracy": accuracy, "seconds": seconds, "images_per_s": images / seconds}


def main() -> None:
    """Print the accuracy, seconds and images/s as JSON. The program ends with a message if something is missing."""
    if not torch.cuda.is_available():
        stop("airbench94 needs a GPU: PyTorch sees no GPU here")
    with tempfile.TemporaryDirectory(prefix="airbench-") as folder:
        data = Path(folder) / "cifar10"
        data.mkdir()
        for split in load():
            keep(split, data / f"{split.name}.pt")
        os.chdir(folder)
        try:
            found = measured(int(sys.argv[1]))
        except ModuleNotFoundError as error:
            stop(f"no module {error.name}. To install what is compared: pip install airbench==0.1.8 torchvision")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
