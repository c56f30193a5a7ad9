"""Judges the learning rate."""

import statistics

from grader.common.contract import BASE_RATE, WORKERS
from grader.grading import gradient_analysis
from grader.grading.checks.finding import Finding
from grader.grading.evidence import Evidence

MAX_FIRST_RATE = 0.5  # share of the highest rate; a warmup over four workers starts at a quarter of it
MIN_WARMUP = 0.02  # share of the updates before the highest rate; the task asks for a tenth, shorter ones count too
MIN_TO_MISS_WARMUP = 0.25  # share of the updates; a rate that is constant for so long is not warmed up
MIN_SCALING = WORKERS / 2  # times the base rate; the task asks for WORKERS, and smaller rates may reach the target
MIN_EPOCHS_FOR_SHAPE = 3  # epochs of a run; in a shorter one a warmup may last into the last epoch
MAX_SCALING_TWICE = 2 * WORKERS * WORKERS  # times the base rate; more is another mistake
MAX_SCALING = WORKERS * 2.5  # times the base rate; a rate that is scaled twice is WORKERS * WORKERS times it


def rate(evidence: Evidence) -> Finding:
    """The learning rate is scaled by the number of workers, and warmed up to its scaled value"""
    rates = rates_of(evidence)
    peak = max(rates)
    peak_index = rates.index(peak)
    seen = (
        f"rate {rates[0]:.4g} at update 1, highest {peak:.4g} at update {peak_index + 1}, {rates[-1]:.4g} at the last"
    )
    warmed = rates[0] <= MAX_FIRST_RATE * peak and peak_index >= MIN_WARMUP * len(rates)
    begun = len(rates) >= MIN_TO_MISS_WARMUP * evidence.profile.updates()
    certain = peak > MAX_SCALING * BASE_RATE or (not warmed and begun)
    advice = "" if warmed else "Climb to the scaled rate over the first tenth of the updates or more (warmup_factor)."
    wrong = _scaling(evidence, peak)
    if not wrong and warmed:
        return _unfinished(evidence, rates, seen) or _cut_off(evidence, rates) or Finding(1, seen)
    share = 0.5 if warmed or not wrong else 0
    return Finding(share, seen, " ".join(part for part in (wrong, advice) if part), certain=certain)


def _unfinished(evidence: Evidence, rates: list[float], seen: str) -> Finding | None:
    """Say of a run that did not end well that its rate still climbed, because nobody knows how it would have ended."""
    if evidence.ended_well() or rates.index(max(rates)) + 1 < len(rates):
        return None
    return Finding(0, f"{seen}; it still climbed")


def rates_of(evidence: Evidence) -> list[float]:
    """Return the learning rate of most weights at each update of worker 0. There is at least one number."""
    return [update.lr[0] for update in evidence.workers[0].updates if update.lr] or [0.0]


def _cut_off(evidence: Evidence, rates: list[float]) -> Finding | None:
    """What is wrong with a rate that still climbs in the last epoch of three or more, unless the target is reached."""
    profile = evidence.profile
    epoch = profile.updates() // profile.epochs
    start = len(rates) - epoch
    if profile.epochs < MIN_EPOCHS_FOR_SHAPE or rates.index(max(rates)) < start or reached_target(evidence):
        return None
    changes = [index for index in range(1, len(rates)) if rates[index] != rates[index - 1]]
    seen = f"the rate climbs from {rates[0]:.4g} to {max(rates):.4g}, and still does so in the last epoch"
    if all(index % epoch == 0 for index in changes):
        seen = f"{seen}; it changes only once an epoch, at update {', '.join(str(index + 1) for index in changes)}"
        return Finding(0.5, seen, "Step the scheduler after every update, or let it count epochs.")
    return Finding(0.5, seen, "Let the warmup end after a tenth or a fifth of the updates.")


def reached_target(evidence: Evidence) -> bool:
    """Return whether the checkpoint reaches the target, whatever weights it holds."""
    return bool(evidence.checkpoint) and evidence.checkpoint.secret >= evidence.profile.target


def _scaling(evidence: Evidence, peak: float) -> str:
    """What is wrong with the highest rate, or an empty text. Optimizers other than SGD need other rates."""
    kind = evidence.workers[0].first.optimizer
    if kind != "SGD" or reached_target(evidence):
        return ""
    steps = gradient_analysis.averaging(evidence.workers)
    summed = statistics.median(step.length_ratio for step in steps) if steps else 1
    times = peak * max(1, summed) / BASE_RATE
    if times < MIN_SCALING:
        return f"Scale the rate: {WORKERS} workers' batch is {WORKERS} times as large, so base rate times hvd.size()."
    if times > MAX_SCALING_TWICE:
        return f"The updates are {times:,.0f} times those of the base rate: use {WORKERS} times {BASE_RATE}."
    if times > MAX_SCALING:
        return f"The updates are {times:.0f} times those of the base rate: is the rate scaled twice?"
    return ""
