"""Finds out from the workers' logs how they divided the training images among themselves."""

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, mode

from grader.run.worker_log import Worker


@dataclass(frozen=True)
class Epoch:
    """This says how the workers divided the training images in one epoch.

    `covered` is the share (0 to 1) of all images that they used. `repeated` is the number of repeated uses, divided by
    the number of all images, and it can be above 1.
    """

    covered: float
    repeated: float


def epochs(workers: list[Worker], train_images: int) -> list[Epoch]:
    """Return for each epoch how the workers together cover the training images.

    An epoch has passed when the workers together have used as many images as there are. The images that were seen are
    divided into a whole number of epochs.
    """
    all_images = images_of_epochs(workers, train_images)
    count = round(sum(map(len, all_images)) / train_images)
    result = []
    for number in range(count):
        used = [index for images in all_images for index in _part(images, number, count)]
        distinct = len(set(used))
        result.append(Epoch(distinct / train_images, (len(used) - distinct) / train_images))
    return result


def images_of_epochs(workers: list[Worker], train_images: int) -> list[list[int]]:
    """Return the images that each worker used, in their order.

    A program may try a batch before it trains. Such images were fetched before update 1, beyond the usual number of
    batches. They are left out if the rest is nearer to a whole number of epochs.
    """
    every = [worker.images() for worker in workers]
    rest = [images[_tried(worker) :] for worker, images in zip(workers, every, strict=True)]
    return min(every, rest, key=lambda found: abs(math.remainder(sum(map(len, found)), train_images)))


def _tried(worker: Worker) -> int:
    """Return how many images were fetched before update 1, beyond the usual number of batches of an update."""
    if not worker.updates:
        return 0
    first, usual = worker.updates[0], mode(update.calls for update in worker.updates)
    return max(0, first.calls - usual) * math.ceil(len(first.images) / max(1, first.calls))


def _part(images: list[int], number: int, count: int) -> list[int]:
    length = len(images) // count
    return images[number * length : (number + 1) * length]


def repeated_at_once(workers: list[Worker]) -> float:
    """Return the share of uses that repeat another worker's image in the same update. It is 0 if none does.

    The first update does not count if there are others, because a program may try a batch before it.
    """
    used = distinct = 0
    for updates in zip(*(worker.updates[1:] or worker.updates for worker in workers), strict=False):
        images = [set(update.images) for update in updates]
        used, distinct = used + sum(map(len, images)), distinct + len(set().union(*images))
    return 1 - distinct / used if used else 0.0


def trained_on_test_images(workers: list[Worker]) -> float:
    """Return the largest share (0 to 1) of a worker's updates that used test images in place of training images.

    A program may fetch many training images at once. It then has updates before which nothing was fetched, and it is
    not known which images an update used.
    """
    return max(map(_in_place_of_training_images, workers), default=0.0)


def _in_place_of_training_images(worker: Worker) -> float:
    others = [update for update in worker.updates if not update.images]
    if not all(update.test_images for update in others):
        return 0.0
    return len(others) / max(1, len(worker.updates))


def fetched_with_test_images(workers: list[Worker]) -> float:
    """Return the largest share (0 to 1) of a worker's updates before which it fetched test images with gradients."""
    return max(
        (sum(bool(update.images and update.test_images) for update in worker.updates) / max(1, len(worker.updates))
         for worker in workers), default=0.0,
    )  # fmt: skip


def kept_order(images: list[int], count: int) -> float:
    """Return how much of the order of a worker's images stays the same from one of `count` epochs to the next, 0 to 1.

    This is the share of images that follow each other in both epochs. The median of all epochs counts. It is 1 also if
    the epochs only begin at different places of one order.
    """
    shares = []
    neighbours = ({frozenset(pair) for pair in pairwise(_part(images, number, count))} for number in range(count))
    for before, after in pairwise(neighbours):
        shares.append(len(before & after) / max(1, len(after)))
    return median(shares) if shares else 0.0
