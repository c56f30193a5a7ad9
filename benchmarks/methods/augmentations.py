"""The augmentations of TensorFlow's CIFAR-10 tutorial, one at a time.

Each takes images `(B, 3, 32, 32)` with values from 0 to 255 and draws from torch's global generator. Values may leave
that range. The tutorial does not cut them off either.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cifar.data import MEAN, STD, flip

Change = Callable[[Tensor], Tensor]


def random_crop(images: Tensor, pixels: int = 4) -> Tensor:
    """Widen each image by `pixels` reflected pixels on each side, and crop it to 32 x 32 at a random position."""
    count, device = len(images), images.device
    windows = F.pad(images.float(), (pixels,) * 4, mode="reflect").unfold(2, 32, 1).unfold(3, 32, 1)
    down, right = torch.randint(2 * pixels + 1, (2, count)).to(device)
    return windows[torch.arange(count, device=device), :, down, right]


def random_flip(images: Tensor) -> Tensor:
    """Exchange left and right in each image with probability 1/2."""
    return flip(images, torch.rand(len(images)) < 0.5)


def random_brightness(images: Tensor, max_change: float = 63) -> Tensor:
    """Add a random number between -`max_change` and `max_change` to all values of an image."""
    return images + _uniform(images, -max_change, max_change)


def random_contrast(images: Tensor, low: float = 0.2, high: float = 1.8) -> Tensor:
    """Multiply each channel's distance from its mean by a random number between `low` and `high`.

    The number is the same for all channels of an image.
    """
    mean = images.float().mean((2, 3), keepdim=True)
    return (images - mean) * _uniform(images, low, high) + mean


def _uniform(images: Tensor, low: float, high: float) -> Tensor:
    """Draw one number between `low` and `high` for each image: `(B, 1, 1, 1)`."""
    return (low + (high - low) * torch.rand(len(images), 1, 1, 1)).to(images.device)


def unchanged(images: Tensor) -> Tensor:
    """Return the images as they are."""
    return images


def compose(*changes: Change) -> Change:
    """A function that applies all changes in this order."""
    return partial(_apply, changes)


def _apply(changes: tuple[Change, ...], images: Tensor) -> Tensor:
    for change in changes:
        images = change(images)
    return images


class Whiten(nn.Module):
    """Give each image mean 0 and deviation 1 over all its channels together.

    Input and output have the shape `(B, 3, 32, 32)`, and the input is normalised. This is TensorFlow's
    `per_image_standardization`. Nothing here is random, and the test images must be whitened as well, so it is a part
    of the network.
    """

    def forward(self, images: Tensor) -> Tensor:
        mean, std = (torch.tensor(value, device=images.device).view(1, 3, 1, 1) for value in (MEAN, STD))
        values = images * std + mean  # this undoes `normalise`
        centred = values - values.mean((1, 2, 3), keepdim=True)
        least = values[0].numel() ** -0.5 / 255  # prevents a division by 0 for an image of one colour
        return centred / centred.square().mean((1, 2, 3), keepdim=True).sqrt().clamp(min=least)
