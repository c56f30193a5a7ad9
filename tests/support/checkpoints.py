"""Checkpoints of the course's network, for tests to change and to hand in."""

import io

import torch

from cifar.model import ResNet9


def as_checkpoint(state: object) -> bytes:
    content = io.BytesIO()
    torch.save(state, content)
    return content.getvalue()


def good_state(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    return ResNet9(width=16).state_dict() | changes
