"""Shows an image beside distorted versions of it (lesson 02)."""

from collections.abc import Callable

import matplotlib.pyplot as plt
from torch import Tensor

from lessons.cells.display.figures import show

VERSIONS = 5


def show_distortions(image: Tensor, distort: Callable[[Tensor], Tensor]) -> None:
    """Show an image, uint8 of shape (3, height, width), beside versions that `distort` makes of a batch of copies."""
    versions = distort(image.repeat(VERSIONS, 1, 1, 1))
    figure, parts = plt.subplots(1, 1 + VERSIONS, figsize=(8, 1.7))
    for ax, each in zip(parts, (image, *versions), strict=True):
        ax.imshow(each.permute(1, 2, 0))
        ax.axis("off")
    parts[0].set_title("as it is", fontsize=10)
    parts[3].set_title("distorted versions", fontsize=10)
    show(
        figure,
        f"An image, and {VERSIONS} versions of it. Each is shifted by some pixels, and some are mirrored.",
        "One training image, and what the network sees of it in five epochs.",
    )
