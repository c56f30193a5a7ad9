"""Trains as `cifar_fast.py` does, but in a chosen arithmetic, or with whole images in all epochs.

    horovodrun -np 4 python -m benchmarks.speed.rivals.fast_ablation float32 --epochs 10

The first word is one of VARIANTS. The options after it are those of the script.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch

from cifar import cli
from cifar.fast import PLANS
from cifar.fast_training import DEFAULTS, train


def float32(device: torch.device) -> AbstractContextManager:
    """Compute in float32 on every device."""
    return nullcontext()


def bfloat16(device: torch.device) -> AbstractContextManager:
    """Compute in bfloat16, also where the processor is slow at it."""
    return torch.autocast(device.type, dtype=torch.bfloat16)


WHOLE_IMAGES = {device: replace(plan, pixels=lambda epoch, epochs: 32) for device, plan in PLANS.items()}
VARIANTS = {
    "float32": {"arithmetic": float32},
    "bfloat16": {"arithmetic": bfloat16},
    "whole": {"arithmetic": float32, "plans": WHOLE_IMAGES},
}


if __name__ == "__main__":
    variant = VARIANTS[sys.argv.pop(1)]
    train(cli.parse(__doc__, **DEFAULTS), **variant)
