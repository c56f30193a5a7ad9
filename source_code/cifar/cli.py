"""Reads the options that the lesson scripts share."""

import argparse
import os
from pathlib import Path
from typing import NoReturn

from cifar import download
from cifar.support.environment import stop


class OneLineParser(argparse.ArgumentParser):
    """A parser that answers a wrong option with one line. All ranks end with exit status 2, and one of them prints."""

    def error(self, message: str) -> NoReturn:
        stop(f"{message} (--help lists the options)", self.prog, status=2)


def positive(text: str) -> int:
    """Return an argument that must be a whole number of 1 or more. Raises ArgumentTypeError for any other text."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, not {text!r}")
    return int(text)


def positive_real(text: str) -> float:
    """Return an argument that must be a finite number above 0. Raises ArgumentTypeError for any other text."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def parse(description: str, epochs: int, batch_size: int, lr: float, arguments: list[str] | None = None):
    """Return the options of a lesson script as a namespace. The caller gives the defaults that differ between scripts.

    A wrong option ends the program with one line and exit status 2. Without `arguments`, those of the program are read.
    """
    parser = OneLineParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--data-dir",
        type=Path,
        metavar="D",
        help=f"folder with CIFAR-10's six .bin files (default: {download.cache_folder()}, fetched on first use)",
    )
    add(
        "--output-dir",
        type=Path,
        metavar="O",
        default=Path("runs") / parser.prog.removesuffix(".py"),
        help="folder for metrics.jsonl and model.pt (default: %(default)s)",
    )
    add(
        "--epochs",
        type=positive,
        metavar="E",
        default=epochs,
        help="passes through the training images (default: %(default)s)",
    )
    add(
        "--batch-size",
        type=positive,
        metavar="B",
        default=batch_size,
        help="images a worker uses for one update (default: %(default)s)",
    )
    add("--lr", type=positive_real, default=lr, help="base learning rate, for one worker (default: %(default)s)")
    add("--seed", type=int, metavar="S", default=0, help="seed of weights and shuffles (default: %(default)s)")
    add("--images", type=positive, metavar="N", help="use the first N training images only (default: all 50,000)")
    add(
        "--test-images",
        type=positive,
        metavar="N",
        help="evaluate on the first N test images only (default: all 10,000)",
    )
    add(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where to compute: auto takes GPUs where there are any (default: %(default)s)",
    )
    args, workers = parser.parse_args(arguments), int(os.environ.get("HOROVOD_SIZE", 1))
    for option, count in (("--images", args.images), ("--test-images", args.test_images)):
        if count is not None and count < workers:
            parser.error(f"{option} {count}: {workers} workers need one each, or more")
    return args
