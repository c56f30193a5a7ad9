"""These functions make checkpoints of the course's network, which tests change and hand in."""

import io

import torch

from cifar.model import ResNet9


def as_checkpoint(state: object) -> bytes:
    content = io.BytesIO()
    torch.save(state, content)
    return content.getvalue()


def good_state(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    return ResNet9(width=16).state_dict() | changes
