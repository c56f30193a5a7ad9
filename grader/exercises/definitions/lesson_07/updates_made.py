"""This exercise asks how many updates several workers make in some epochs."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def _batches(images: int, batch: int) -> int:
    """Return the number of batches in `images` images. The last batch may be smaller."""
    return -(-images // batch)


def updates_made(images: int, batch: int, workers: int, epochs: int) -> int:
    """Return the number of updates in all epochs."""
    return epochs * _batches(images // workers, batch)


def _one_worker(images: int, batch: int, workers: int, epochs: int) -> int:
    return updates_made(images, batch, 1, epochs)


def _floor(images: int, batch: int, workers: int, epochs: int) -> int:
    return epochs * (images // workers // batch)


def _at_once(images: int, batch: int, workers: int, epochs: int) -> int:
    return _batches(epochs * (images // workers), batch)


def _leftovers(images: int, batch: int, workers: int, epochs: int) -> int:
    return epochs * _batches(_batches(images, workers), batch)


def _summed(images: int, batch: int, workers: int, epochs: int) -> int:
    return workers * updates_made(images, batch, workers, epochs)


def _multiplied(images: int, batch: int, workers: int, epochs: int) -> int:
    return updates_made(images * workers, batch, 1, epochs)


def _one_epoch(images: int, batch: int, workers: int, epochs: int) -> int:
    return updates_made(images, batch, workers, 1)


MISTAKES = (
    Mistake(
        "one worker", _one_worker,
        "These are one worker's updates: of several, each goes through its own shard only, images // workers.",
    ),
    Mistake("floor", _floor, "The last, smaller batch of a shard makes an update, too: round up."),
    Mistake(
        "at once", _at_once,
        "No batch goes on into the next epoch: round up in each epoch, then multiply by the epochs.",
    ),
    Mistake(
        "leftovers", _leftovers,
        "The few images that workers does not divide are left out: round down the shard, round up its batches.",
    ),
    Mistake("summed", _summed, "All workers make an update together: it counts once, not once for each of them."),
    Mistake("multiplied", _multiplied, "More workers make a shard smaller: divide the images by them."),
    Mistake("one epoch", _one_epoch, "These are the updates of one epoch: multiply by the epochs."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, last: float, leftover: bool) -> TestCase:
    """Draw arguments. `last` is the size of a shard's last, smaller batch, as a share of a batch.

    If `last` is 0, there is no smaller batch. With `leftover`, some images are left over.
    """
    workers, batch = int(draw.integers(2, 17)), 8 * int(draw.integers(2, 33))
    shard = batch * int(draw.integers(20, 200)) + int(batch * last)
    images = workers * shard + (int(draw.integers(1, workers)) if leftover else 0)
    return TestCase(
        group, [{"images": images, "batch": batch, "workers": workers, "epochs": int(draw.integers(3, 30))}]
    )


def _draw(draw: np.random.Generator) -> list[TestCase]:
    lasts = draw.uniform(0.1, 0.5, 2)
    return [
        *(_case(draw, "shards of whole batches", 0, leftover=False) for _ in range(2)),
        *(_case(draw, "a last, smaller batch", last, leftover=False) for last in lasts),
        *(_case(draw, "images left over", 0, leftover=True) for _ in range(2)),
    ]


EXERCISE = Compared(
    id="updates_made",
    title="The updates of a training run",
    signature="updates_made(images: int, batch: int, workers: int, epochs: int) -> int",
    statement="""\
Return how many updates `workers` workers make in `epochs` epochs. Each worker's shard has images // workers images; the
few that are left over go to nobody. In each epoch a worker goes through its shard once, in batches of `batch` images
(the per-worker batch), the last of which is smaller where the shard does not divide evenly; that one counts, too. For
an update each worker computes the gradient of one batch.""",
    example=(1000, 25, 4, 3),
    groups={"shards of whole batches": 1, "a last, smaller batch": 1, "images left over": 1},
    draw=_draw,
    reference=updates_made,
    mistakes=MISTAKES,
    relative=1e-9,  # the answers count updates, so they must be exact
)
