"""The gradient of given images as one vector, and a step along it: gradient descent by hand."""

import torch
from torch import Tensor, nn

from cifar import workers
from cifar.data import Split, normalise


def gradient(net: nn.Module, split: Split, indices: Tensor) -> Tensor:
    """Gradient of the mean loss over the images at `indices`, one float32 vector."""
    total = 0
    for part in indices.split(512):
        images, labels = split.batch(part)
        with workers.autocast(images.device):
            logits = net(normalise(images)).float()
        loss = nn.functional.cross_entropy(logits, labels, reduction="sum") / len(indices)
        parts = torch.autograd.grad(loss, list(net.parameters()))
        total = total + torch.cat([part.reshape(-1) for part in parts])
    return total


@torch.no_grad()
def step(net: nn.Module, vector: Tensor, rate: float) -> None:
    """Plain SGD: move the weights by `-rate` times a gradient as `gradient` gives it."""
    parameters = list(net.parameters())
    pieces = vector.split([parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter -= rate * piece.view_as(parameter).to(parameter.device)
