"""Batch normalisation's statistics as they should be: those of the training images at the weights as they are.

The running averages lag behind the weights: after ten updates a third of them is still their starting value. Where runs
with very different numbers of updates are compared, that lag would be taken for a difference between the networks.
"""

import torch
from torch import nn

from cifar.data import Split, normalise


@torch.no_grad()
def settle(net: nn.Module, split: Split) -> None:
    """Set the statistics of `net`'s batch normalisation to those of a split's images; all at once: keep it small."""
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.momentum = None  # the plain mean of what is seen from now on
    net.train()
    net(normalise(split.images))
    net.eval()
