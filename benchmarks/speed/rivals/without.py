"""Runs `cifar_fast.py` in a chosen arithmetic, or without its smaller images, for a comparison of accuracies.

    horovodrun -np 4 python -m benchmarks.speed.rivals.without float32 --epochs 10

takes the script's own options after the first word, which is one of MEANS.
"""

import runpy
import sys
from contextlib import nullcontext
from dataclasses import replace

import torch

from benchmarks.speed.comparisons.time_to_accuracy import PROGRAMS
from cifar import fast, training, workers


def _float32() -> None:
    _arithmetic(lambda device: nullcontext())


def _bfloat16() -> None:
    """Also where the processor is slow at it."""
    _arithmetic(lambda device: torch.autocast(device.type, dtype=torch.bfloat16))


def _arithmetic(chosen) -> None:
    workers.autocast = training.autocast = chosen


def _whole() -> None:
    """Images of 32 pixels from the first epoch on, in float32."""
    _float32()
    fast.PLANS = {device: replace(plan, pixels=lambda epoch, epochs: 32) for device, plan in fast.PLANS.items()}


MEANS = {"float32": _float32, "bfloat16": _bfloat16, "whole": _whole}


if __name__ == "__main__":
    MEANS[sys.argv.pop(1)]()
    runpy.run_path(str(PROGRAMS["fast"][1][0]), run_name="__main__")
