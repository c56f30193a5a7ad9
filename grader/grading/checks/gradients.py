"""Judges whether the workers averaged their gradients and kept the same weights."""

import math
import statistics

from grader.common.contract import WORKERS
from grader.common.text import in_words
from grader.grading import gradient_analysis
from grader.grading.checks.finding import Finding
from grader.grading.evidence import Evidence
from grader.run import challenger

# The exchange of gradients, seen from outside the run.
MIN_TRAFFIC = 0.3  # share of the bytes that averaging needs; compressed gradients need half of them
MIN_UPDATES_FOR_PACE = 16  # updates; the traffic of a shorter run is mostly its start
MIN_HALFWAY_TRAFFIC, MAX_HALFWAY_TRAFFIC = 0.2, 0.8  # share of the bytes at half of the updates; an honest run: 0.5
MIN_CPU_TIME = 0.25  # share of the workers' mean CPU time; an honest worker's time is close to the mean

# The gradients, as the workers' logs describe them.
MIN_UPDATES_WITH_GRADIENTS = 0.8  # share of the updates; a gradient that is zero or not finite cannot be compared
SINGLE_JUMPS = 2  # updates; a program may load other weights once or twice, and the line on model.pt judges that
MIN_COSINE = 0.98  # cosine; compressed gradients reach 0.999, another worker's gradient about 0.5
MIN_STEPS_AFTER_A_TRIAL = 5  # updates; fewer do not show that only the first one was a trial
MAX_MOVED = 0.9  # times the way of all steps; where slow weights are mixed in every few steps, it is at most 0.77

# The audit: see grader.grading.audit. The numbers come from its calibration.
MIN_AUDITED = 6  # updates whose gradients were computed again
MAX_SILENT = 0.25  # share of the questions; a worker that is slow to see one has lost its weights
MIN_FITTING = 0.75  # share of the audited updates; with synchronised batch norm 0.98 fit
MIN_LENGTH = 0.001  # times the length of the computed gradients; with mixed images it is about a half
MIN_CHANGE = 0.004  # mean cosine of the weights' change and the computed gradients; chance gives 0.0004


def averaged(evidence: Evidence) -> Finding:
    """At every update each worker applies the mean of all workers' gradients"""
    if not evidence.connected():
        sizes = sorted({worker.first.size for worker in evidence.workers})
        seen = f"Horovod connects {' or '.join(map(str, sizes))} of {WORKERS} workers: {WORKERS} separate networks"
        return Finding(0, seen, "Call hvd.init() first, then wrap the optimizer in hvd.DistributedOptimizer.")
    applied = _exchanged(evidence) or _at_work(evidence) or _moved(evidence) or _applied(evidence)
    return (_invented(evidence) if applied.share == 1 else None) or applied


def _exchanged(evidence: Evidence) -> Finding | None:
    """What is wrong with the bytes over the loopback. They may be too few, or not keep pace with the updates."""
    if not evidence.run.outside.loopback:
        return None  # GPUs exchange directly
    updates = min(len(worker.updates) for worker in evidence.workers)
    told, course = evidence.workers[0].first.bytes, challenger.network_bytes()
    # A log that tells of few bytes helps nobody to pass: the network is smaller only if it is another one.
    size = told if told and _another_network(evidence) else max(told, course)
    needed = 2 * (WORKERS - 1) * size * updates
    sent = evidence.run.outside.loopback[-1][1]
    seen = f"{sent / 1e6:,.0f} MB between workers; {updates} averaged updates need {needed / 1e6:,.0f} MB"
    if sent <= MIN_TRAFFIC * needed:  # a log that says 0 bytes does not help where none were sent
        advice = "Wrap the optimizer, and step the wrapped one: hvd.DistributedOptimizer(optimizer, ...)."
        return Finding(0, seen, advice)
    halfway = next((number for made, number in evidence.run.outside.loopback if made >= updates / 2), sent)
    if updates >= MIN_UPDATES_FOR_PACE and not MIN_HALFWAY_TRAFFIC < halfway / sent < MAX_HALFWAY_TRAFFIC:
        seen = f"{seen}; {halfway / sent:.0%} of them before half of the updates"
        return Finding(0, seen, "The bytes between the workers do not fit the updates that they report.")
    return None


def _at_work(evidence: Evidence) -> Finding | None:
    """A worker that computes next to nothing cannot have contributed gradients."""
    waited = not evidence.ended_well() and not evidence.checkpoint  # such a run cannot pass, so nobody gains by it
    used = evidence.run.outside.cpu_moving if waited else evidence.run.outside.cpu_seconds
    if len(used) < WORKERS or not any(used.values()):
        return None  # the run was too short to measure the CPU time of its workers
    mean = statistics.fmean(used.values())
    idle = [rank for rank, seconds in sorted(used.items()) if seconds < MIN_CPU_TIME * mean]
    if not idle:
        return None
    seen = "seconds of CPU by worker: " + ", ".join(f"{used[rank]:.0f}" for rank in sorted(used))
    who = in_words("worker", idle).capitalize()
    return Finding(0, seen, f"{who} hardly computed: every worker must train on its own shard.")


def _moved(evidence: Evidence) -> Finding | None:
    """Weights that something else than the optimizer moves do not show what the mean gradient does."""
    for rank, worker in enumerate(evidence.workers):
        lines = [update for update in worker.updates[1:] if update.commitment or update.step is not None]
        told = [line for line in lines if line.step is not None and math.isfinite(line.step + (line.moved or 0.0))]
        if len(told) < MIN_UPDATES_WITH_GRADIENTS * len(lines) and not _diverged(evidence):
            seen = f"worker {rank} tells how far its weights moved at {len(told)} of {len(lines)} updates"
            return Finding(0, seen, "Use the step of a torch.optim optimizer, and leave its hooks alone.")
        ways = sorted(line.moved or 0.0 for line in told)[: -SINGLE_JUMPS or None]
        steps, moved = sum(line.step for line in told), sum(ways)
        if moved > MAX_MOVED * steps:
            seen = f"worker {rank}'s weights move by {moved:.3g} between the updates, and by {steps:.3g} in them"
            return Finding(0, seen, "Change the weights with the mean gradient alone, by the optimizer's step.")
    return None


def _applied(evidence: Evidence) -> Finding:
    """What the workers' logs say of their gradients. They hold projections of the computed and of the applied ones."""
    updates = min(len(worker.updates) for worker in evidence.workers)
    steps = gradient_analysis.averaging(evidence.workers)
    if len(steps) < MIN_UPDATES_WITH_GRADIENTS * updates and not _diverged(evidence):
        seen = f"gradients were seen at {len(steps)} of {updates} updates"
        return Finding(0, seen, "Use loss.backward() and a torch.optim optimizer, and leave their hooks alone.")
    wrong = [step for step in steps if step.cosine_to_mean < MIN_COSINE]
    tried = [step.update for step in wrong] == [1] and len(steps) >= MIN_STEPS_AFTER_A_TRIAL
    if not wrong or tried:  # a program may try a batch before it trains
        scale = statistics.median(step.length_ratio for step in steps) if steps else 1
        return Finding(1, f"applied the mean at {len(steps)} of {updates} updates, {scale:.2g} times its length")
    seen = f"not the mean at {len(wrong)} of {updates} updates, first at update {wrong[0].update}"
    if all(step.cosine_to_own > MIN_COSINE for step in wrong):
        advice = "Step the optimizer that hvd.DistributedOptimizer returned."
        return Finding(0, f"{seen}: each worker applied its own gradient", advice)
    if all(step.cosine_to_rank0 > MIN_COSINE for step in wrong):
        return Finding(0, f"{seen}: all applied worker 0's gradient", "Average gradients: hvd.allreduce, no broadcast.")
    return Finding(0, seen, "Average every parameter's gradient over the workers before each step.")


def _diverged(evidence: Evidence) -> bool:
    """Whether the training diverged: the last numbers are not finite, and there is no usable checkpoint."""
    last = [update for worker in evidence.workers for update in worker.updates[-1:]]
    numbers = [
        number for update in last for number in (update.loss or 0.0, *(update.local or []), *(update.applied or []))
    ]
    return not evidence.checkpoint and not all(map(math.isfinite, numbers))


def _invented(evidence: Evidence) -> Finding | None:
    """What is wrong with the answers to the questions: see `grader.grading.audit`."""
    audit = evidence.audit
    if _too_short_for_an_audit(evidence) or _another_network(evidence):
        return None
    if audit.failure:
        return Finding(0, f"the gradients could not be computed again: {audit.failure}", "Ask your instructor.")
    if audit.false or audit.silent > MAX_SILENT * audit.asked:
        seen = f"asked at {audit.asked} updates for the weights; {audit.false} wrong answers, {audit.silent} missing"
        return Finding(0, seen, "Leave the observer, its files and its lines alone.")
    if _diverged(evidence):
        return None  # no gradient can be compared with one that is not finite
    if audit.computed < MIN_AUDITED and evidence.run.status == 0:
        seen = f"the gradients of {audit.computed} updates could be computed again, of {MIN_AUDITED} that are needed"
        named = any(update.images for worker in evidence.workers for update in worker.updates)
        return Finding(0, seen, ONE_BATCH if named else NO_TRAINING_IMAGES)
    if audit.fitting < MIN_FITTING * audit.computed:
        unfit = audit.computed - audit.fitting
        seen = f"at {unfit} of {audit.computed} audited updates the gradients do not fit the images"
        return Finding(0, seen, "Each worker must compute the gradient of the images that it fetches for an update.")
    if audit.lengths and statistics.median(audit.lengths) < MIN_LENGTH:
        seen = f"the gradients are {statistics.median(audit.lengths):.1g} times as long as those of the images"
        return Finding(0, seen, "Train with the mean loss of the images.")
    if audit.changes and statistics.fmean(audit.changes) < MIN_CHANGE:
        seen = f"at {audit.computed} audited updates the weights do not follow the gradients"
        return Finding(0, seen, "Change the weights with the mean gradient alone.")
    return None


def _too_short_for_an_audit(evidence: Evidence) -> bool:
    """Whether a run makes so few updates that its gradients would hardly depend on the images."""
    return evidence.profile.updates() < challenger.MIN_UPDATES


def _another_network(evidence: Evidence) -> bool:
    """Whether no network of the assignment's shape was trained. The checkpoint's line says so, and the run fails."""
    return not evidence.checkpoint and not any(
        update.commitment for worker in evidence.workers for update in worker.updates
    )


ONE_BATCH = "Train ResNet9(width=16) as one module, and fetch at each update the images that it uses."
NO_TRAINING_IMAGES = "No update uses training images. The grader computes gradients again of these images alone."


def same_start(evidence: Evidence) -> Finding:
    """All workers start from the same weights, and hold the same after every update"""
    updates = min(len(worker.updates) for worker in evidence.workers)
    starts = [worker.first.start for worker in evidence.workers]
    odd = [rank for rank, value in enumerate(starts) if value != starts[0]]
    if odd:
        advice = "Call hvd.broadcast_parameters(net.state_dict(), root_rank=0) when nothing else changes the weights."
        return Finding(0, f"{in_words('worker', odd)} started from other weights than worker 0", advice)
    if differ := gradient_analysis.first_difference(evidence.workers):
        advice = "All workers must apply the same gradient with the same rate, and optimizers with the same state."
        return Finding(0, f"same start, but weights differ between workers after update {differ}", advice)
    return Finding(1, f"hash {starts[0]:08x} on all {len(starts)} workers at the start, equal after {updates} updates")
