"""The rubric as data: each line has its points, the lines that it depends on, and a check.

A check's docstring is what the line asks of the learner. A check returns the share of the points (0 to 1), what was
seen, and what to change. A mistake is penalised only once: if one line fails because of another, it keeps its points
and the report says why. To pass, the lines in MUST_PASS must actually be met.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from cifar.support.horovodrun import read_line
from grader.common.contract import BASE_RATE, WORKERS
from grader.grading import gradient_analysis, shard_analysis
from grader.grading.checkpoint import agrees
from grader.grading.evidence import Evidence, Missing
from grader.run.worker_log import Update

OTHER_BATCH = f"B is the per-worker batch; the global batch is {WORKERS} times as large."

# The exchange of gradients, seen from outside the run.
MIN_TRAFFIC = 0.3  # share of the bytes that averaging needs; compressed gradients need half of them
MIN_UPDATES_FOR_PACE = 16  # updates; the traffic of a shorter run is mostly its start
MIN_HALFWAY_TRAFFIC, MAX_HALFWAY_TRAFFIC = 0.2, 0.8  # share of the bytes at half of the updates; an honest run: 0.5
MIN_CPU_TIME = 0.25  # share of the workers' mean CPU time; an honest worker's time is close to the mean

# The gradients, as the workers' logs describe them.
MIN_UPDATES_WITH_GRADIENTS = 0.8  # share of the updates; a gradient that is zero or not finite cannot be compared
MIN_COSINE = 0.98  # cosine; compressed gradients reach 0.999, another worker's gradient about 0.5

# The audit: see grader.grading.audit. The numbers come from its calibration.
MIN_UPDATES_FOR_AUDIT = 20  # updates of the reference
MIN_AUDITED = 6  # updates whose gradients were computed again
MAX_SILENT = 0.25  # share of the questions; a worker that is slow to see one has lost its weights
MIN_FITTING = 0.75  # share of the audited updates; with synchronised batch norm 0.98 fit
MIN_CHANGE = 0.03  # cosine of the weights' change and the computed gradients; with Adam it is 0.1

# The training images and batches.
MAX_SHARED_IMAGES = 0.02  # share of the images of one update; padding gives a few images to two workers
MAX_REPEATED_IMAGES = 0.01  # share of the training images in one epoch; a padded sampler repeats a few
MIN_COVERED_IMAGES = 0.97  # share of the training images in one epoch; a loader may drop the last, smaller batch
MAX_BATCH_DEVIATION = 0.03  # share of B, for a mean over all updates; the last batch of an epoch may be smaller
MAX_IMAGES_USED = 1.05  # times the images that E epochs have; a padded sampler uses a few more

# The learning rate.
MAX_FIRST_RATE = 0.5  # share of the highest rate; a warmup over four workers starts at a quarter of it
MIN_WARMUP = 0.02  # share of the updates before the highest rate; the task asks for a tenth, shorter ones count too
MIN_SCALING = WORKERS / 2  # times the base rate; the task asks for WORKERS, and smaller rates may reach the target
MAX_SCALING = WORKERS * 2.5  # times the base rate; a rate that is scaled twice is WORKERS * WORKERS times it

# The files.
MAX_WRITES = WORKERS - 2  # of one file between two updates; if all workers write it, the monitor may miss one write

MAX_ERROR_LENGTH = 300  # characters of a worker's error message; one line of the report


@dataclass(frozen=True)
class Finding:
    """The result of a check: the share of the points, what was seen, and what to change (empty with full points)."""

    share: float
    seen: str
    advice: str = ""


Check = Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Line:
    """A line of the rubric. All lines but `begins` are judged only if every worker made at least one update.

    `follows`: ids of lines above it. If one of them is not met, it is the mistake, and this line is its consequence
    and keeps its points.
    """

    id: str
    points: int
    check: Check
    follows: tuple[str, ...] = ()

    @property
    def asks(self) -> str:
        """What the line asks for, in the check's words."""
        return self.check.__doc__


def begins(evidence: Evidence) -> Finding:
    """Four workers start and make updates"""
    counts = [len(worker.updates) for worker in evidence.workers]
    if min(counts) > 0:
        return Finding(1, f"{len(counts)} workers at work")
    silent = [str(rank) for rank, count in enumerate(counts) if count == 0]
    reason = evidence.run.stopped or _last_error(evidence.log)
    return Finding(0, f"no update of a torch.optim optimizer on worker {', '.join(silent)}", reason)


def ends(evidence: Evidence) -> Finding:
    """All workers train to the end without an error, in equally many updates, within the limits"""
    counts = [len(worker.updates) for worker in evidence.workers]
    seen = f"updates by worker: {', '.join(map(str, counts))}; {evidence.run.seconds:.0f} s"
    if evidence.run.stopped:
        return Finding(0, seen, evidence.run.stopped)
    if evidence.run.status != 0:
        advice = _last_error(evidence.log)
        if len(set(counts)) > 1 and UNEVEN not in advice:
            advice = f"{advice} {UNEVEN}"
        return Finding(0, f"{seen}; exit status {evidence.run.status}", advice)
    if len(set(counts)) > 1:
        return Finding(0, seen, UNEVEN)
    if any(worker.end is None for worker in evidence.workers):
        return Finding(0, f"{seen}; not every worker came to the end of its program", "Let the program end by itself.")
    return Finding(1, seen)


UNEVEN = "All workers must make the same number of updates: give each equally many batches."
LAUNCHERS_OWN = ("Traceback", "Terminated", "During handling")  # such lines do not say what went wrong
SHUT_DOWN = "Horovod has been shut down"  # what the other workers say when one has ended or failed
CAUSES = {  # a pattern that Horovod's error leaves in the log, and the advice that helps
    r"_allreduce_delay|backward_passes_per_step": "Step the optimizer that hvd.DistributedOptimizer returned.",
}


def _last_error(log: str) -> str:
    """The last error that a worker printed. The launcher's own lines and mere consequences are left out."""
    lines = [line for line in map(read_line, log.split("\n")) if line.stream == "stderr" and re.match(r"\S", line.text)]
    said = [(line.rank, line.text) for line in lines if not line.text.startswith(LAUNCHERS_OWN)]
    errors = [(rank, text) for rank, text in said if re.match(r"[\w.]*(Error|Exception)\b", text)] or said
    if not errors:
        return "The workers said nothing of it: run the command by hand."
    causes = [(rank, text) for rank, text in errors if SHUT_DOWN not in text]
    if not causes:
        waited = ", ".join(map(str, sorted({rank for rank, _ in errors})))
        return f"Worker {waited} still waited for the others when one of them ended. {UNEVEN}"
    rank, text = causes[-1]
    known = [advice for pattern, advice in CAUSES.items() if re.search(pattern, log)]
    return " ".join([f"Worker {rank} said: {text[:MAX_ERROR_LENGTH]}", *known])


def device(evidence: Evidence) -> Finding:
    """Each worker has a device of its own, where there are enough"""
    devices = [worker.first.device for worker in evidence.workers]
    gpus = f"{evidence.gpus or 'no'} GPU{'s' * (evidence.gpus != 1)}"
    seen = f"workers on {', '.join(devices)}; the machine has {gpus}"
    max_workers = -(-WORKERS // evidence.gpus) if evidence.gpus else WORKERS  # on one device
    name, count = Counter(devices).most_common(1)[0]
    if count > max_workers and name != "cpu":
        return Finding(0, seen, "Give each worker the GPU of its local rank: torch.cuda.set_device(hvd.local_rank()).")
    return Finding(1, seen)


def averaged(evidence: Evidence) -> Finding:
    """At every update each worker applies the mean of all workers' gradients"""
    if not evidence.connected():
        sizes = sorted({worker.first.size for worker in evidence.workers})
        seen = f"Horovod connects {' or '.join(map(str, sizes))} of {WORKERS} workers: {WORKERS} separate networks"
        return Finding(0, seen, "Call hvd.init() first, then wrap the optimizer in hvd.DistributedOptimizer.")
    applied = _exchanged(evidence) or _at_work(evidence) or _applied(evidence)
    return (_invented(evidence) if applied.share == 1 else None) or applied


def _exchanged(evidence: Evidence) -> Finding | None:
    """What is wrong with the bytes over the loopback. They may be too few, or not keep pace with the updates."""
    if not evidence.run.outside.loopback:
        return None  # GPUs exchange directly
    updates = min(len(worker.updates) for worker in evidence.workers)
    needed = 2 * (WORKERS - 1) * evidence.workers[0].first.bytes * updates
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
    stuck = evidence.run.stopped and not evidence.checkpoint  # such a run cannot pass, so nobody gains by being stopped
    used = evidence.run.outside.cpu_moving if stuck else evidence.run.outside.cpu_seconds
    if len(used) < WORKERS or not any(used.values()):
        return None  # the run was too short to measure the CPU time of its workers
    mean = statistics.fmean(used.values())
    idle = [str(rank) for rank, seconds in used.items() if seconds < MIN_CPU_TIME * mean]
    if not idle:
        return None
    seen = "seconds of CPU by worker: " + ", ".join(f"{used[rank]:.0f}" for rank in sorted(used))
    return Finding(0, seen, f"Worker {', '.join(idle)} hardly computes: every worker must train on its own shard.")


def _applied(evidence: Evidence) -> Finding:
    """What the workers' logs say of their gradients. They hold projections of the computed and of the applied ones."""
    updates = min(len(worker.updates) for worker in evidence.workers)
    steps = gradient_analysis.averaging(evidence.workers)
    if len(steps) < MIN_UPDATES_WITH_GRADIENTS * updates and not _diverged(evidence):
        seen = f"gradients were seen at {len(steps)} of {updates} updates"
        return Finding(0, seen, "Use loss.backward() and a torch.optim optimizer, and leave their hooks alone.")
    wrong = [step for step in steps if step.cosine_to_mean < MIN_COSINE]
    if not wrong:
        scale = statistics.median(step.length_ratio for step in steps) if steps else 1
        return Finding(1, f"applied the mean at {len(steps)} of {updates} updates, {scale:.2g} times its length")
    seen = f"not the mean at {len(wrong)} of {updates} updates, first at update {wrong[0].update}"
    if all(step.cosine_to_own > MIN_COSINE for step in wrong):
        return Finding(0, f"{seen}: each worker applied its own gradient", "Step the wrapped optimizer, not the base.")
    if all(step.cosine_to_rank0 > MIN_COSINE for step in wrong):
        return Finding(0, f"{seen}: all applied worker 0's gradient", "Average gradients: hvd.allreduce, no broadcast.")
    return Finding(0, seen, "Average every parameter's gradient over the workers before each step.")


def _diverged(evidence: Evidence) -> bool:
    """Whether the training diverged: the last losses are not finite, and there is no usable checkpoint."""
    losses = [update.loss for worker in evidence.workers for update in worker.updates[-1:]]
    return not evidence.checkpoint and any(loss is not None and not math.isfinite(loss) for loss in losses)


def _invented(evidence: Evidence) -> Finding | None:
    """What is wrong with the answers to the questions: see `grader.grading.audit`."""
    audit = evidence.audit
    if _too_short_for_an_audit(evidence):
        return None
    if audit.failure:
        return Finding(0, f"the gradients could not be computed again: {audit.failure}", "Ask your instructor.")
    if audit.false or audit.silent > MAX_SILENT * audit.asked:
        seen = f"asked at {audit.asked} updates for the weights; {audit.false} wrong answers, {audit.silent} missing"
        return Finding(0, seen, "Leave the observer, its files and its lines alone.")
    if audit.computed < MIN_AUDITED and evidence.run.status == 0:
        seen = f"the gradients of {audit.computed} updates could be computed again, of {MIN_AUDITED} that are needed"
        return Finding(0, seen, ONE_BATCH)
    if audit.fitting < MIN_FITTING * audit.computed:
        unfit = audit.computed - audit.fitting
        seen = f"at {unfit} of {audit.computed} audited updates the gradients do not fit the images"
        return Finding(0, seen, "Each worker must compute the gradient of the images that it fetches for an update.")
    if audit.changes and statistics.fmean(audit.changes) < MIN_CHANGE:
        seen = f"at {audit.computed} audited updates the weights do not follow the gradients"
        return Finding(0, seen, "Change the weights with the mean gradient alone.")
    return None


def _too_short_for_an_audit(evidence: Evidence) -> bool:
    """Whether a run makes so few updates that its gradients would hardly depend on the images."""
    return evidence.profile.updates() < MIN_UPDATES_FOR_AUDIT


ONE_BATCH = "Train ResNet9(width=16) as one module, and fetch at each update the images that it uses."


def same_start(evidence: Evidence) -> Finding:
    """All workers start from the same weights, and hold the same after every update"""
    updates = min(len(worker.updates) for worker in evidence.workers)
    starts = [worker.first.start for worker in evidence.workers]
    odd = [str(rank) for rank, value in enumerate(starts) if value != starts[0]]
    if odd:
        advice = "Call hvd.broadcast_parameters(net.state_dict(), root_rank=0) before the first update."
        return Finding(0, f"worker {', '.join(odd)} started from other weights than worker 0", advice)
    if differ := gradient_analysis.first_difference(evidence.workers):
        advice = "All workers must apply the same gradient with the same rate, and optimizers with the same state."
        return Finding(0, f"same start, but weights differ between workers after update {differ}", advice)
    return Finding(1, f"hash {starts[0]:08x} on all {len(starts)} workers at the start, equal after {updates} updates")


def shards(evidence: Evidence) -> Finding:
    """Each training image is used once an epoch, by one worker, in a new order each epoch"""
    if (twice := shard_analysis.repeated_at_once(evidence.workers)) > MAX_SHARED_IMAGES:
        advice = f"Give each worker its own {1 / WORKERS:.0%} of the shuffle: shard(order, hvd.rank(), hvd.size())."
        return Finding(0, f"{twice:.0%} of an update's images are used by several workers", advice)
    epochs = shard_analysis.epochs(evidence.workers, evidence.profile.train_images)
    if not epochs:
        return Finding(0, "less than an epoch was seen", "Let all workers use all training images once an epoch.")
    covered, repeated = min(epoch.covered for epoch in epochs), max(epoch.repeated for epoch in epochs)
    seen = f"an epoch uses {covered:.1%} of the training images, {repeated:.1%} more than once"
    if repeated > MAX_REPEATED_IMAGES or covered < MIN_COVERED_IMAGES:
        advice = "Together the workers must use all training images once an epoch: check rank and size in the shard."
        return Finding(0, seen, advice)
    if any(shard_analysis.same_order(worker, len(epochs)) for worker in evidence.workers):
        advice = "Shuffle anew each epoch: shuffle(len(train), seed, epoch)."
        return Finding(0.5, f"{seen}, always in the same order", advice)
    return Finding(1, seen)


def batch(evidence: Evidence) -> Finding:
    """Each worker uses B images an update, in one batch or accumulated over several"""
    wanted = evidence.profile.batch_size
    updates = [update for worker in evidence.workers for update in worker.updates]
    (images, calls), _ = Counter((len(update.images), update.calls) for update in updates).most_common(1)[0]
    seen = f"{images} images an update in {calls} batch{'es' * (calls != 1)} on a worker; asked for: {wanted}"
    if images == 0:
        return _batch_on_average(updates, wanted)
    if images % wanted or calls * wanted < images:
        return Finding(0, seen, OTHER_BATCH)
    return Finding(1, seen)


def _batch_on_average(updates: list[Update], wanted: int) -> Finding:
    """Judges a program that fetches images in larger pieces than an update uses, for example a whole epoch at once."""
    images = statistics.fmean(len(update.images) for update in updates)
    seen = f"{images:.4g} images an update on a worker, on average; asked for: {wanted}"
    enough = abs(images - wanted) < MAX_BATCH_DEVIATION * wanted
    return Finding(1, seen) if enough else Finding(0, seen, OTHER_BATCH)


def rate(evidence: Evidence) -> Finding:
    """The learning rate is scaled by the number of workers, and warmed up to its scaled value"""
    rates = [max(update.lr) for update in evidence.workers[0].updates if update.lr] or [0.0]
    peak = max(rates)
    peak_index = rates.index(peak)
    seen = (
        f"rate {rates[0]:.4g} at update 1, highest {peak:.4g} at update {peak_index + 1}, {rates[-1]:.4g} at the last"
    )
    warmed = rates[0] <= MAX_FIRST_RATE * peak and peak_index >= MIN_WARMUP * len(rates)
    advice = "" if warmed else "Climb to the scaled rate over the first tenth of the updates or more (warmup_factor)."
    wrong = _scaling(evidence, peak)
    if not wrong and warmed:
        return Finding(1, seen)
    return Finding(0.5 if warmed or not wrong else 0, seen, " ".join(part for part in (wrong, advice) if part))


def _scaling(evidence: Evidence, peak: float) -> str:
    """What is wrong with the highest rate, or an empty text. Optimizers other than SGD need other rates."""
    kind = evidence.workers[0].first.optimizer
    if kind != "SGD" or (evidence.checkpoint and evidence.checkpoint.secret >= evidence.profile.target):
        return ""
    steps = gradient_analysis.averaging(evidence.workers)
    summed = statistics.median(step.length_ratio for step in steps) if steps else 1
    times = peak * max(1, summed) / BASE_RATE
    if times < MIN_SCALING:
        return f"Scale the rate: {WORKERS} workers' batch is {WORKERS} times as large, so base rate times hvd.size()."
    if times > MAX_SCALING:
        return f"The updates are {times:.0f} times those of the base rate: is the rate scaled twice?"
    return ""


def checkpoint(evidence: Evidence) -> Finding:
    """model.pt is the state dict of the ResNet9(width=16) that the workers trained, after their last update"""
    if not evidence.checkpoint:
        return Finding(0, evidence.checkpoint.reason, "After training, on rank 0: training.save(net, args.output_dir).")
    if any(evidence.checkpoint.is_after(worker.updates[-1]) for worker in evidence.workers):
        return Finding(1, f"weights {evidence.checkpoint.weights:08x}, as after the last update")
    earlier = [update.update for update in evidence.workers[0].updates if evidence.checkpoint.is_after(update)]
    if earlier:
        advice = "Save after the last epoch: the best test accuracy of several is no honest estimate."
        return Finding(0, f"the weights as after update {earlier[-1]}, not the last", advice)
    advice = "Save the state dict of the network that the workers trained, after its last update."
    return Finding(0, "weights that the workers had after none of their updates", advice)


def one_writer(evidence: Evidence) -> Finding:
    """One worker writes the results"""
    writers = {rank: worker.wrote() for rank, worker in enumerate(evidence.workers) if worker.wrote()}
    shared = sorted({name for rank, names in writers.items() for name in names
                     if sum(name in other for other in writers.values()) > 1})  # fmt: skip
    advice = "Write on rank 0 alone: if hvd.rank() == 0."
    if shared:
        who = ", ".join(str(rank) for rank, names in writers.items() if shared[0] in names)
        return Finding(0, f"{shared[0]} was written by workers {who}", advice)
    often = {name: count for name, count in (evidence.run.outside.writes or {}).items() if count > MAX_WRITES}
    if often:
        name, count = max(often.items(), key=lambda item: item[1])
        return Finding(0, f"{name} was written {count} times without an update in between", advice)
    return Finding(1, f"written by worker {', '.join(map(str, writers)) or 0}")


def metrics(evidence: Evidence) -> Finding:
    """metrics.jsonl has a line an epoch, and its last test accuracy is what the grader measures"""
    if not evidence.metrics:
        reason = evidence.metrics.reason if isinstance(evidence.metrics, Missing) else "metrics.jsonl is empty"
        return Finding(0, reason, "On rank 0, add a line after each epoch.")
    reported = evidence.metrics[-1].test_accuracy
    if not evidence.checkpoint:
        return Finding(0, "there is no model.pt to compare with", "See the line on model.pt.")
    seen = f"reported {reported:.2%} after {len(evidence.metrics)} epochs, measured {evidence.checkpoint.visible:.2%}"
    if not agrees(reported, evidence.checkpoint.visible, evidence.visible_images):
        return Finding(0, seen, "Sum hits over all workers' test images; average the BN statistics before you test.")
    return Finding(1, seen)


def target(evidence: Evidence) -> Finding:
    """The network reaches the target on test images that the run never saw"""
    if not evidence.checkpoint:
        return Finding(0, "there is no model.pt to test", "See the line on model.pt.")
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
        advice = f"{WORKERS} workers make 1/{WORKERS} of the updates: scale the rate by hvd.size() and warm it up."
        return Finding(0, seen, advice)
    return Finding(1, seen)


RUBRIC = (
    Line("begins", 5, begins),
    Line("ends", 10, ends),
    Line("device", 5, device),
    Line("averaged", 20, averaged),
    Line("same_start", 10, same_start, follows=("averaged",)),
    Line("shards", 10, shards, follows=("ends",)),
    Line("batch", 5, batch),
    Line("rate", 10, rate, follows=("ends",)),
    Line("checkpoint", 5, checkpoint, follows=("ends", "averaged")),
    Line("one_writer", 5, one_writer),
    Line("metrics", 5, metrics, follows=("ends", "averaged", "same_start", "checkpoint", "one_writer")),
    Line("target", 10, target, follows=("ends", "averaged", "same_start", "shards", "batch", "rate", "checkpoint")),
)
MUST_PASS = ("averaged", "target")  # no pass without these
