"""Replaces batch normalisation's running statistics by those of the training images at the current weights.

The running averages lag behind the weights. After ten updates, a third of each is still its starting value. If runs
with very different numbers of updates are compared, this lag would look like a difference between the networks.
"""

import torch
from torch import nn

from cifar.data import Split, normalise


@torch.no_grad()
def settle(net: nn.Module, split: Split) -> None:
    """Set the statistics of `net`'s batch normalisation to those of a split's images.

    All images pass through the network at once, so the split must be small. The network is then in evaluation mode.
    """
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.momentum = None  # None means the plain mean over all batches since the reset
    net.train()
    net(normalise(split.images))
    net.eval()
