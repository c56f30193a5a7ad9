"""This exercise asks how many different images the averaged gradient of an update rests on."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def effective_batch(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    """Return the number of different images in an update."""
    return workers * batch if sharded or not same_seed else batch


def _always(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    return workers * batch


def _never(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    return batch


def _seeds_alone(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    return batch if same_seed else workers * batch


def _shards_alone(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    return workers * batch if sharded else batch


def _both(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    return workers * batch if sharded and not same_seed else batch


def _divided(workers: int, batch: int, sharded: bool, same_seed: bool) -> int:
    return effective_batch(workers, batch, sharded, same_seed) // workers


MISTAKES = (
    Mistake(
        "always", _always,
        "Without shards, one seed gives all workers the same images: their mean gradient is that of one batch.",
    ),
    Mistake("never", _never, "batch is what each worker has: different images of all workers count together."),
    Mistake(
        "seeds alone", _seeds_alone,
        "One seed does not make shards alike: each worker shuffles its own images, which no other has.",
    ),
    Mistake(
        "shards alone", _shards_alone,
        "Workers that shuffle all images by different seeds have different batches, even without shards.",
    ),
    Mistake("both", _both, "One of the two is enough: shards, or different seeds."),
    Mistake("divided", _divided, "batch is the per-worker batch already: do not divide it by the workers."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, sharded: bool, same_seed: bool) -> TestCase:
    workers, batch = int(draw.integers(2, 65)), 8 * int(draw.integers(2, 65))
    return TestCase(group, [{"workers": workers, "batch": batch, "sharded": sharded, "same_seed": same_seed}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        *(_case(draw, "shards", True, same_seed) for same_seed in (True, False, True, False)),
        *(_case(draw, "no shards, different seeds", False, False) for _ in range(2)),
        *(_case(draw, "no shards, one seed", False, True) for _ in range(2)),
    ]


EXERCISE = Compared(
    id="effective_batch",
    title="How many images an update rests on",
    signature="effective_batch(workers: int, batch: int, sharded: bool, same_seed: bool) -> int",
    statement="""\
In an update each of `workers` workers computes the gradient of a batch of `batch` images, and these gradients are
averaged. Return how many different images the average rests on.

With sharded = True each worker has a part of the images of its own, of which no other worker has any, and shuffles this
part. With sharded = False each worker has all images, and shuffles all of them. If same_seed is True, all workers
shuffle by the same seed. Otherwise each worker has a seed of its own.

An image is in a batch once at most. Two batches that were drawn from all images by different seeds may have a few
images in common. Ignore that, and count all their images as different.

Goyal et al. 2017 (arXiv:1706.02677), section 3, "Data shuffling".""",
    example=(4, 64, True, False),
    groups={"shards": 1, "no shards, different seeds": 1, "no shards, one seed": 2},
    draw=_draw,
    reference=effective_batch,
    mistakes=MISTAKES,
    relative=1e-9,  # the answers count images, so they must be exact
)
