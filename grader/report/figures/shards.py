"""Draws which worker used which training image."""

import math
from itertools import chain, islice

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grader.common.contract import WORKERS
from grader.grading.evidence import Evidence
from grader.report.figures.curves import limited_updates
from grader.report.figures.picture import (
    NO_IMAGE,
    NOBODY,
    NOBODY_COLOR,
    SEVERAL,
    SEVERAL_COLOR,
    WORKER_COLORS,
    Picture,
    owner_pixels,
    patch_legend,
    to_svg,
)
from grader.run.worker_log import Worker

MAX_DOTS = 4_800  # dots for one epoch; a dot is then about two units wide
DRAWN_EPOCHS = 2  # epochs; two are enough to see whether the second epoch is shuffled anew
EXPECTED = (
    "Each dot is an image. Four colours in equal parts, next to no white, no black; "
    "where all images are shuffled, a new pattern each epoch."
)


def draw(evidence: Evidence) -> Picture:
    """Draw which worker used which training image in the first two epochs."""
    title = "Shards: which worker used which image"
    total = evidence.profile.train_images
    used = sum(len(update.images) for worker in evidence.workers for update in limited_updates(worker))
    if not used:
        return Picture("shards", title, EXPECTED, "No worker fetched training images through cifar.data.")
    epochs = max(1, round(used / total))  # in an epoch, all workers together use as many images as there are
    owners = [_owners(evidence.workers, epoch, epochs, total) for epoch in range(min(DRAWN_EPOCHS, epochs))]

    def paint(figure: Figure) -> None:
        for epoch, axes in enumerate(figure.subplots(1, DRAWN_EPOCHS, squeeze=False)[0]):
            axes.axis("off")
            if epoch < len(owners):
                _dots(axes, _sample(owners[epoch]), f"frame-{epoch}")
                axes.set_title(f"epoch {epoch + 1}")
        patch_legend(figure, _owner_patches(), "outside lower center")

    return Picture("shards", title, EXPECTED, _observe(owners, total), to_svg("shards", title, 232, paint))


def _owners(workers: list[Worker], epoch: int, epochs: int, total: int) -> np.ndarray:
    """Return the owner of each training image in one of the `epochs`.

    An owner is a rank, NOBODY, or SEVERAL if the image was used more than once.
    """
    uses, owner = np.zeros(total, int), np.full(total, NOBODY)
    for rank, worker in enumerate(workers):
        batches = [update.images for update in limited_updates(worker)]
        length = sum(map(len, batches)) // epochs
        part = islice(chain.from_iterable(batches), epoch * length, epoch * length + min(length, 2 * total))
        images = np.fromiter((image for image in part if image < total), int)
        uses += np.bincount(images, minlength=total)
        owner[images] = rank
    return np.where(uses > 1, SEVERAL, owner)


def _observe(owners: list[np.ndarray], total: int) -> str:
    parts = [f"Epoch {epoch}: {_shares(owner)}." for epoch, owner in enumerate(owners, start=1)]
    if len(owners) == DRAWN_EPOCHS:
        parts.append(f"The same worker as in epoch 1: {np.mean(owners[0] == owners[1]):.1%}.")
    if total > MAX_DOTS:
        parts.append(f"One image of each {math.ceil(total / MAX_DOTS)} is drawn, chosen at random.")
    return " ".join(parts)


def _shares(owner: np.ndarray) -> str:
    shares = ", ".join(f"{np.mean(owner == rank):.1%}" for rank in range(WORKERS))
    rest = f"{np.mean(owner == NOBODY):.1%} by none, {np.mean(owner == SEVERAL):.1%} more than once"
    return f"{shares} of the images by worker 0 to {WORKERS - 1}, {rest}"


def _sample(owner: np.ndarray) -> np.ndarray:
    """Return at most MAX_DOTS entries in order, one random entry of each group.

    With a fixed step between the entries, all of them could belong to one worker.
    """
    edges = np.linspace(0, len(owner), min(len(owner), MAX_DOTS) + 1).astype(int)
    return owner[np.random.default_rng(0).integers(edges[:-1], edges[1:])]


def _dots(axes: Axes, owner: np.ndarray, frame: str) -> None:
    """Draw one pixel per image in rows, and around them a frame with the name `frame`."""
    columns = math.ceil(math.sqrt(len(owner) * 1.1))
    rows = math.ceil(len(owner) / columns)
    grid = np.full(rows * columns, NO_IMAGE)
    grid[: len(owner)] = owner
    axes.imshow(owner_pixels(grid.reshape(rows, columns)), interpolation="none")
    axes.add_patch(matplotlib.patches.Rectangle((-0.5, -0.5), columns, rows, fill=False, gid=frame))


def _owner_patches() -> dict[str, Patch]:
    colors = {f"worker {rank}": color for rank, color in enumerate(WORKER_COLORS)}
    colors |= {"none": NOBODY_COLOR, "more than once": SEVERAL_COLOR}
    patches = [Patch(facecolor=color, edgecolor="black", linewidth=0.6, label=label) for label, color in colors.items()]
    return {f"owner-{number}": patch for number, patch in enumerate(patches)}
