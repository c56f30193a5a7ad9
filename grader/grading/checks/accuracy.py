"""Judges how well the network classifies images that the run never saw."""

import math
import statistics

from grader.common.contract import BASE_RATE, WORKERS
from grader.grading.checks.finding import Finding
from grader.grading.checks.learning_rate import rates_of
from grader.grading.evidence import Evidence

MAX_IMAGES_USED = 1.05  # times the images that E epochs have; a padded sampler uses a few more
MIN_IMAGES_USED = 0.9  # times the images that E epochs have
MAX_LAST_RATE = 0.5  # share of the highest rate; a rate that falls towards 0 ends below it
LAST_LOSSES = 5  # updates whose mean loss is told


def target(evidence: Evidence) -> Finding:
    """The network reaches the target on test images that the run never saw"""
    if not evidence.checkpoint:
        return Finding(0, f"nothing to test: {evidence.checkpoint.reason}", "See the line on model.pt.")
    updates = (update for worker in evidence.workers for update in worker.updates)
    if not any(map(evidence.checkpoint.is_after, updates)):
        return Finding(0, "model.pt holds other weights than the workers trained", "See the line on model.pt.")
    seen = f"{evidence.checkpoint.secret:.2%} of the secret test images; the target is {evidence.profile.target:.2%}"
    used = sum(len(worker.images()) for worker in evidence.workers) / evidence.profile.train_images
    if used > MAX_IMAGES_USED * evidence.profile.epochs:
        advice = (
            f"Train for --epochs E, no longer: together the workers use each image {evidence.profile.epochs} times."
        )
        return Finding(0, f"{seen}, after {used:.3g} epochs' images instead of {evidence.profile.epochs}", advice)
    if evidence.checkpoint.secret < evidence.profile.target:
        return Finding(0, seen, _advice(evidence, used))
    return Finding(1, seen)


def _advice(evidence: Evidence, used: float) -> str:
    """What to change where the target is missed. `used` is the number of epochs whose images were used."""
    rates, name = rates_of(evidence), evidence.workers[0].first.optimizer
    losses = [update.loss for update in evidence.workers[0].updates if update.loss is not None]
    odd = next((update.update for worker in evidence.workers for update in worker.updates
                if update.loss is not None and not math.isfinite(update.loss)), None)  # fmt: skip
    if odd:
        return f"The loss is not finite at update {odd}: lower the highest rate, {max(rates):.4g}, or warm up longer."
    if used < MIN_IMAGES_USED * evidence.profile.epochs:
        return f"The workers trained on {used:.3g} epochs' images. Train for all {evidence.profile.epochs} epochs."
    if name != "SGD" and max(rates) >= BASE_RATE * WORKERS:
        return f"A rate of {max(rates):.4g} is high for {name}. Try a tenth of it."
    if rates[-1] > MAX_LAST_RATE * max(rates):
        return f"The last rate is {rates[-1] / max(rates):.0%} of the highest. Let it fall towards 0 after the warmup."
    end = f"The training loss ends at {statistics.fmean(losses[-LAST_LOSSES:]):.2f}. " if losses else ""
    if name != "SGD":
        return f"{end}Try other rates for {name} than {max(rates):.4g}, or SGD with the rate of the lessons."
    return f"{end}Compare batch, rate, momentum and augmentation with lesson 07, and change one of them at a time."
