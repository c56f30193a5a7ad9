"""Judges which images the workers used, and how many in an update."""

import math
import statistics
from collections import Counter

from grader.common.contract import WORKERS
from grader.grading import shard_analysis
from grader.grading.checks.finding import Finding
from grader.grading.evidence import Evidence
from grader.run.worker_log import Update

MAX_SHARED_IMAGES = 0.02  # share of the images of one update; padding gives a few images to two workers
MAX_REPEATED_IMAGES = 0.01  # share of the training images in one epoch; a padded sampler repeats a few
MIN_COVERED_IMAGES = 0.97  # share of the training images in one epoch; a loader may drop the last, smaller batch
MAX_UPDATES_ON_TEST_IMAGES = 0.05  # share of the updates that use test images in place of training images
MAX_UPDATES_BESIDE_TEST_IMAGES = 0.3  # share of the updates; one that measures with gradients does so once an epoch
MAX_KEPT_ORDER = 0.5  # share of neighbours that stay neighbours; a new shuffle keeps hardly any
MAX_VISIBLE_GAIN = 5  # standard errors by which the visible test images may be classified better than the secret ones
MAX_BATCH_DEVIATION = 0.03  # share of B, for a mean over all updates; the last batch of an epoch may be smaller


def shards(evidence: Evidence) -> Finding:
    """Each training image is used once an epoch, by one worker, in a new order each epoch"""
    if (twice := shard_analysis.repeated_at_once(evidence.workers)) > MAX_SHARED_IMAGES:
        advice = f"Give each worker its own {1 / WORKERS:.0%} of the shuffle: shard(order, hvd.rank(), hvd.size())."
        return Finding(0, f"{twice:.0%} of an update's images are used by several workers", advice, certain=True)
    if (tested := _trained_on_test_images(evidence)) > 0:
        seen = f"{tested:.0%} of the updates train on test images"
        return Finding(0, seen, "Train on the training images alone: test images only measure.", certain=True)
    if (gain := _gain_on_visible_images(evidence)) > MAX_VISIBLE_GAIN:
        measured = evidence.checkpoint
        seen = (
            f"{measured.visible:.2%} of the visible test images and {measured.secret:.2%} of the secret ones are right"
        )
        advice = f"This is {gain:.0f} standard errors. Train on the training images alone: test images only measure."
        return Finding(0, seen, advice, certain=True)
    epochs = shard_analysis.epochs(evidence.workers, evidence.profile.train_images)
    if not epochs:
        return Finding(0, "less than an epoch was seen", "Let all workers use all training images once an epoch.")
    covered, repeated = min(epoch.covered for epoch in epochs), max(epoch.repeated for epoch in epochs)
    seen = f"an epoch uses {covered:.1%} of the training images, {repeated:.1%} more than once"
    if repeated > MAX_REPEATED_IMAGES or covered < MIN_COVERED_IMAGES:
        advice = "Together the workers must use all training images once an epoch: check rank and size in the shard."
        return Finding(0, seen, advice)
    used = shard_analysis.images_of_epochs(evidence.workers, evidence.profile.train_images)
    kept = max(shard_analysis.kept_order(images, len(epochs)) for images in used)
    if kept > MAX_KEPT_ORDER:
        advice = "Shuffle anew each epoch: shuffle(len(train), seed, epoch)."
        return Finding(0.5, f"{seen}; {kept:.0%} of the images that follow each other do so in the next epoch", advice)
    return Finding(1, seen)


def _gain_on_visible_images(evidence: Evidence) -> float:
    """By how many standard errors the visible test images are classified better than the secret ones.

    A program that reads the test images without `batch`, and trains on them, knows the visible ones.
    """
    if not evidence.checkpoint or not evidence.secret_images:
        return 0.0
    both = (evidence.checkpoint.visible + evidence.checkpoint.secret) / 2
    error = math.sqrt(both * (1 - both) * (1 / evidence.visible_images + 1 / evidence.secret_images))
    return (evidence.checkpoint.visible - evidence.checkpoint.secret) / error if error else 0.0


def _trained_on_test_images(evidence: Evidence) -> float:
    """The share of the updates that train on test images, or 0 if it is too small to say so."""
    instead = shard_analysis.trained_on_test_images(evidence.workers)
    beside = shard_analysis.fetched_with_test_images(evidence.workers)
    if instead <= MAX_UPDATES_ON_TEST_IMAGES and beside <= MAX_UPDATES_BESIDE_TEST_IMAGES:
        return 0.0
    return max(instead, beside)


def batch(evidence: Evidence) -> Finding:
    """Each worker uses B images an update, in one batch or accumulated over several"""
    wanted = evidence.profile.batch_size
    updates = [update for worker in evidence.workers for update in worker.updates]
    (images, calls), _ = Counter((len(update.images), update.calls) for update in updates).most_common(1)[0]
    seen = f"{images} images an update in {calls} batch{'es' * (calls != 1)} on a worker; asked for: {wanted}"
    if images == 0:
        return _batch_on_average(updates, wanted)
    if images % wanted or calls * wanted < images:
        return Finding(0, seen, _other_batch(images, wanted))
    return Finding(1, seen)


def _other_batch(images: float, wanted: int) -> str:
    """What to change if a worker uses another number of images than it was asked to."""
    if abs(images * WORKERS - wanted) < WORKERS:
        return f"--batch-size is the batch of one worker: do not divide it by {WORKERS}."
    if images >= WORKERS * wanted:
        return f"--batch-size is the batch of one worker: it must not use the images of all {WORKERS}."
    return "Use args.batch_size images in each update of a worker."


def _batch_on_average(updates: list[Update], wanted: int) -> Finding:
    """Judges a program that fetches images in larger pieces than an update uses, for example a whole epoch at once."""
    images = statistics.fmean(len(update.images) for update in updates)
    seen = f"{images:.4g} images an update on a worker, on average; asked for: {wanted}"
    enough = abs(images - wanted) < MAX_BATCH_DEVIATION * wanted
    return Finding(1, seen) if enough else Finding(0, seen, _other_batch(images, wanted))
