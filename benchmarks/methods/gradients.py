"""Gradient descent by hand: the gradient of given images as one vector, and a step against it."""

import torch
from torch import Tensor, nn

from cifar import workers
from cifar.data import Split, normalise


def gradient(net: nn.Module, split: Split, indices: Tensor) -> Tensor:
    """The gradient of the mean loss over the images at `indices`, as one float32 vector.

    At most 512 images at a time pass through the network, which limits the memory needed.
    """
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
    """Make one step of plain SGD: add `-rate` times `vector` to the weights. `gradient` returns such a vector."""
    parameters = list(net.parameters())
    pieces = vector.split([parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter -= rate * piece.view_as(parameter).to(parameter.device)
