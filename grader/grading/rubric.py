"""The rubric as data: each line has points, the lines it depends on, and a check that answers what was seen.

A check's docstring is what the line asks of the learner. It returns the share of the points (0 to 1), what was seen,
and what to change. One mistake costs once: a line that is not met because of another unmet line keeps its points, and
says so; a pass needs the lines of MUST_PASS to be met in truth.
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
MOST = 1.05  # times the images that were asked for: a padded sampler uses a few more
FIT = 0.98  # cosine; compressed gradients reach 0.999, another worker's gradient about 0.5


@dataclass(frozen=True)
class Finding:
    """Outcome of a check: share of the points, what was seen, and what to change (empty with full points)."""

    share: float
    seen: str
    advice: str = ""


Check = Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Line:
    """A line of the rubric, judged from what was seen of at least one update of every worker, `begins` excepted.

    `follows`: ids of lines above it; where one of them is not met either, that was the mistake, and this line, a
    consequence of it, costs nothing more.
    """

    id: str
    points: int
    check: Check
    follows: tuple[str, ...] = ()

    @property
    def asks(self) -> str:
        """What the line asks for, in the check's words."""
        return self.check.__doc__


def begins(seen: Evidence) -> Finding:
    """Four workers start and make updates"""
    counts = [len(worker.updates) for worker in seen.workers]
    if min(counts) > 0:
        return Finding(1, f"{len(counts)} workers at work")
    silent = [str(rank) for rank, count in enumerate(counts) if count == 0]
    reason = seen.run.stopped or _last_error(seen.log)
    return Finding(0, f"no update of a torch.optim optimizer on worker {', '.join(silent)}", reason)


def ends(seen: Evidence) -> Finding:
    """All workers train to the end without an error, in equally many updates, within the limits"""
    counts = [len(worker.updates) for worker in seen.workers]
    told = f"updates by worker: {', '.join(map(str, counts))}; {seen.run.seconds:.0f} s"
    if seen.run.stopped:
        return Finding(0, told, seen.run.stopped)
    if seen.run.status != 0:
        advice = _last_error(seen.log)
        if len(set(counts)) > 1 and UNEVEN not in advice:
            advice = f"{advice} {UNEVEN}"
        return Finding(0, f"{told}; exit status {seen.run.status}", advice)
    if len(set(counts)) > 1:
        return Finding(0, told, UNEVEN)
    if any(worker.end is None for worker in seen.workers):
        return Finding(0, f"{told}; not every worker came to the end of its program", "Let the program end by itself.")
    return Finding(1, told)


UNEVEN = "All workers must make the same number of updates: give each equally many batches."
LAUNCHERS_OWN = ("Traceback", "Terminated", "During handling")  # these lines do not say what went wrong
SHUT_DOWN = "Horovod has been shut down"  # what the other workers say when one has ended or failed
CAUSES = {  # what Horovod's own complaints mean, by a pattern of what stands in the log
    r"_allreduce_delay|backward_passes_per_step": "Step the optimizer that hvd.DistributedOptimizer returned.",
}


def _last_error(log: str) -> str:
    """The last thing that a worker complained of; the launcher's own lines, and mere consequences, are left out."""
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
    return " ".join([f"Worker {rank} said: {text[:300]}", *known])


def device(seen: Evidence) -> Finding:
    """Each worker has a device of its own, where there are enough"""
    devices = [worker.first.device for worker in seen.workers]
    told = f"workers on {', '.join(devices)}; the machine has {seen.gpus or 'no'} GPU{'s' * (seen.gpus != 1)}"
    most = -(-WORKERS // seen.gpus) if seen.gpus else WORKERS
    name, count = Counter(devices).most_common(1)[0]
    if count > most and name != "cpu":
        return Finding(0, told, "Give each worker the GPU of its local rank: torch.cuda.set_device(hvd.local_rank()).")
    return Finding(1, told)


def averaged(seen: Evidence) -> Finding:
    """At every update each worker applies the mean of all workers' gradients"""
    if not seen.connected():
        sizes = sorted({worker.first.size for worker in seen.workers})
        told = f"Horovod connects {' or '.join(map(str, sizes))} of {WORKERS} workers: {WORKERS} separate networks"
        return Finding(0, told, "Call hvd.init() first, then wrap the optimizer in hvd.DistributedOptimizer.")
    return _exchanged(seen) or _at_work(seen) or _applied(seen)


def _exchanged(seen: Evidence) -> Finding | None:
    """What is wrong with the bytes that went over the loopback: too few, or not at the pace of the updates."""
    if not seen.run.outside.loopback:
        return None  # GPUs exchange directly
    updates = min(len(worker.updates) for worker in seen.workers)
    needed = 2 * (WORKERS - 1) * seen.workers[0].first.bytes * updates
    sent = seen.run.outside.loopback[-1][1]
    told = f"{sent / 1e6:,.0f} MB between workers; {updates} averaged updates need {needed / 1e6:,.0f} MB"
    if sent < 0.3 * needed:  # compressed gradients need half as many bytes
        advice = "Wrap the optimizer, and step the wrapped one: hvd.DistributedOptimizer(optimizer, ...)."
        return Finding(0, told, advice)
    halfway = next((number for made, number in seen.run.outside.loopback if made >= updates / 2), sent)
    if updates >= 16 and not 0.2 < halfway / sent < 0.8:
        told = f"{told}; {halfway / sent:.0%} of them before half of the updates"
        return Finding(0, told, "The bytes between the workers do not fit the updates that they report.")
    return None


def _at_work(seen: Evidence) -> Finding | None:
    """A worker that computes next to nothing cannot have contributed gradients."""
    stuck = seen.run.stopped and not seen.checkpoint  # which cannot pass, so that stopping hides nothing
    used = seen.run.outside.cpu_moving if stuck else seen.run.outside.cpu_seconds
    if len(used) < WORKERS or not any(used.values()):
        return None  # a run too short to be looked at
    mean = statistics.fmean(used.values())
    idle = [str(rank) for rank, seconds in used.items() if seconds < 0.25 * mean]
    if not idle:
        return None
    told = "seconds of CPU by worker: " + ", ".join(f"{used[rank]:.0f}" for rank in sorted(used))
    return Finding(0, told, f"Worker {', '.join(idle)} hardly computes: every worker must train on its own shard.")


def _applied(seen: Evidence) -> Finding:
    """What the workers' own lines say of their gradients: projections of what each computed and of what it applied."""
    updates = min(len(worker.updates) for worker in seen.workers)
    steps = gradient_analysis.averaging(seen.workers)
    if len(steps) < 0.8 * updates and not _diverged(seen):
        told = f"gradients were seen at {len(steps)} of {updates} updates"
        return Finding(0, told, "Use loss.backward() and a torch.optim optimizer, and leave their hooks alone.")
    wrong = [step for step in steps if step.cosine_to_mean < FIT]
    if not wrong:
        scale = statistics.median(step.length_ratio for step in steps) if steps else 1
        return Finding(1, f"applied the mean at {len(steps)} of {updates} updates, {scale:.2g} times its length")
    told = f"not the mean at {len(wrong)} of {updates} updates, first at update {wrong[0].update}"
    if all(step.cosine_to_own > FIT for step in wrong):
        return Finding(0, f"{told}: each worker applied its own gradient", "Step the wrapped optimizer, not the base.")
    if all(step.cosine_to_rank0 > FIT for step in wrong):
        return Finding(0, f"{told}: all applied worker 0's gradient", "Average gradients: hvd.allreduce, no broadcast.")
    return Finding(0, told, "Average every parameter's gradient over the workers before each step.")


def _diverged(seen: Evidence) -> bool:
    """Whether the run ended in numbers that are none, weights included."""
    losses = [update.loss for worker in seen.workers for update in worker.updates[-1:]]
    return not seen.checkpoint and any(loss is not None and not math.isfinite(loss) for loss in losses)


def same_start(seen: Evidence) -> Finding:
    """All workers start from the same weights, and hold the same after every update"""
    updates = min(len(worker.updates) for worker in seen.workers)
    starts = [worker.first.start for worker in seen.workers]
    odd = [str(rank) for rank, value in enumerate(starts) if value != starts[0]]
    if odd:
        advice = "Call hvd.broadcast_parameters(net.state_dict(), root_rank=0) before the first update."
        return Finding(0, f"worker {', '.join(odd)} started from other weights than worker 0", advice)
    if differ := gradient_analysis.first_difference(seen.workers):
        advice = "All workers must apply the same gradient with the same rate, and optimizers with the same state."
        return Finding(0, f"same start, but weights differ between workers after update {differ}", advice)
    return Finding(1, f"hash {starts[0]:08x} on all {len(starts)} workers at the start, equal after {updates} updates")


def shards(seen: Evidence) -> Finding:
    """Each training image is used once an epoch, by one worker, in a new order each epoch"""
    if (twice := shard_analysis.repeated_at_once(seen.workers)) > 0.02:
        advice = f"Give each worker its own {1 / WORKERS:.0%} of the shuffle: shard(order, hvd.rank(), hvd.size())."
        return Finding(0, f"{twice:.0%} of an update's images are used by several workers", advice)
    epochs = shard_analysis.epochs(seen.workers, seen.profile.train_images)
    if not epochs:
        return Finding(0, "less than an epoch was seen", "Let all workers use all training images once an epoch.")
    covered, repeated = min(epoch.covered for epoch in epochs), max(epoch.repeated for epoch in epochs)
    told = f"an epoch uses {covered:.1%} of the training images, {repeated:.1%} more than once"
    if repeated > 0.01 or covered < 0.97:
        advice = "Together the workers must use all training images once an epoch: check rank and size in the shard."
        return Finding(0, told, advice)
    if any(shard_analysis.same_order(worker, len(epochs)) for worker in seen.workers):
        advice = "Shuffle anew each epoch: shuffle(len(train), seed, epoch)."
        return Finding(0.5, f"{told}, always in the same order", advice)
    return Finding(1, told)


def batch(seen: Evidence) -> Finding:
    """Each worker uses B images an update, in one batch or accumulated over several"""
    wanted = seen.profile.batch_size
    updates = [update for worker in seen.workers for update in worker.updates]
    (images, calls), _ = Counter((len(update.images), update.calls) for update in updates).most_common(1)[0]
    told = f"{images} images an update in {calls} batch{'es' * (calls != 1)} on a worker; asked for: {wanted}"
    if images == 0:
        return _batch_on_average(updates, wanted)
    if images % wanted or calls * wanted < images:
        return Finding(0, told, OTHER_BATCH)
    return Finding(1, told)


def _batch_on_average(updates: list[Update], wanted: int) -> Finding:
    """Where images are fetched in larger pieces than an update uses: a whole epoch's, say."""
    images = statistics.fmean(len(update.images) for update in updates)
    told = f"{images:.4g} images an update on a worker, on average; asked for: {wanted}"
    enough = abs(images - wanted) < 0.03 * wanted  # an epoch's last batch may be smaller
    return Finding(1, told) if enough else Finding(0, told, OTHER_BATCH)


def rate(seen: Evidence) -> Finding:
    """The learning rate is scaled by the number of workers, and warmed up to its scaled value"""
    rates = [max(update.lr) for update in seen.workers[0].updates if update.lr] or [0.0]
    peak = max(rates)
    at = rates.index(peak)
    told = f"rate {rates[0]:.4g} at update 1, highest {peak:.4g} at update {at + 1}, {rates[-1]:.4g} at the last"
    warmed = rates[0] <= 0.5 * peak and at >= 0.02 * len(rates)
    advice = "" if warmed else "Climb to the scaled rate over the first tenth of the updates or more (warmup_factor)."
    wrong = _scaling(seen, peak)
    if not wrong and warmed:
        return Finding(1, told)
    return Finding(0.5 if warmed or not wrong else 0, told, " ".join(part for part in (wrong, advice) if part))


def _scaling(seen: Evidence, peak: float) -> str:
    """What is wrong with the highest rate; empty if it may be right. Other rules than SGD have other rates."""
    kind = seen.workers[0].first.optimizer
    if kind != "SGD" or (seen.checkpoint and seen.checkpoint.secret >= seen.profile.target):
        return ""
    steps = gradient_analysis.averaging(seen.workers)
    summed = statistics.median(step.length_ratio for step in steps) if steps else 1
    times = peak * max(1, summed) / BASE_RATE
    if times < WORKERS / 2:
        return f"Scale the rate: {WORKERS} workers' batch is {WORKERS} times as large, so base rate times hvd.size()."
    if times > WORKERS * 2.5:
        return f"The updates are {times:.0f} times those of the base rate: is the rate scaled twice?"
    return ""


def checkpoint(seen: Evidence) -> Finding:
    """model.pt is the state dict of the ResNet9(width=16) that the workers trained, after their last update"""
    if not seen.checkpoint:
        return Finding(0, seen.checkpoint.reason, "After training, on rank 0: training.save(net, args.output_dir).")
    last = {worker.updates[-1].weights for worker in seen.workers}
    if seen.checkpoint.weights in last:
        return Finding(1, f"weights {seen.checkpoint.weights:08x}, as after the last update")
    earlier = [update.update for update in seen.workers[0].updates if update.weights == seen.checkpoint.weights]
    if earlier:
        advice = "Save after the last epoch: the best test accuracy of several is no honest estimate."
        return Finding(0, f"the weights as after update {earlier[-1]}, not the last", advice)
    advice = "Save the state dict of the network that the workers trained, after its last update."
    return Finding(0, "weights that the workers had after none of their updates", advice)


def one_writer(seen: Evidence) -> Finding:
    """One worker writes the results"""
    writers = {rank: worker.wrote() for rank, worker in enumerate(seen.workers) if worker.wrote()}
    shared = sorted({name for rank, names in writers.items() for name in names
                     if sum(name in other for other in writers.values()) > 1})  # fmt: skip
    advice = "Write on rank 0 alone: if hvd.rank() == 0."
    if shared:
        who = ", ".join(str(rank) for rank, names in writers.items() if shared[0] in names)
        return Finding(0, f"{shared[0]} was written by workers {who}", advice)
    often = {name: count for name, count in (seen.run.outside.writes or {}).items() if count >= WORKERS - 1}
    if often:
        name, count = max(often.items(), key=lambda item: item[1])
        return Finding(0, f"{name} was written {count} times without an update in between", advice)
    return Finding(1, f"written by worker {', '.join(map(str, writers)) or 0}")


def metrics(seen: Evidence) -> Finding:
    """metrics.jsonl has a line an epoch, and its last test accuracy is what the grader measures"""
    if not seen.metrics:
        reason = seen.metrics.reason if isinstance(seen.metrics, Missing) else "metrics.jsonl is empty"
        return Finding(0, reason, "On rank 0, add a line after each epoch.")
    reported = seen.metrics[-1].test_accuracy
    if not seen.checkpoint:
        return Finding(0, "there is no model.pt to compare with", "See the line on model.pt.")
    told = f"reported {reported:.2%} after {len(seen.metrics)} epochs, measured {seen.checkpoint.visible:.2%}"
    if not agrees(reported, seen.checkpoint.visible, seen.visible_images):
        return Finding(0, told, "Sum hits over all workers' test images; average the BN statistics before you test.")
    return Finding(1, told)


def target(seen: Evidence) -> Finding:
    """The network reaches the target on test images that the run never saw"""
    if not seen.checkpoint:
        return Finding(0, "there is no model.pt to test", "See the line on model.pt.")
    if seen.checkpoint.weights not in {update.weights for worker in seen.workers for update in worker.updates}:
        return Finding(0, "model.pt holds other weights than the workers trained", "See the line on model.pt.")
    told = f"{seen.checkpoint.secret:.2%} of the secret test images; the target is {seen.profile.target:.2%}"
    used = sum(len(worker.images()) for worker in seen.workers) / seen.profile.train_images
    if used > MOST * seen.profile.epochs:
        advice = f"Train for --epochs E, no longer: together the workers use each image {seen.profile.epochs} times."
        return Finding(0, f"{told}, after {used:.3g} epochs' images instead of {seen.profile.epochs}", advice)
    if seen.checkpoint.secret < seen.profile.target:
        advice = f"{WORKERS} workers make 1/{WORKERS} of the updates: scale the rate by hvd.size() and warm it up."
        return Finding(0, told, advice)
    return Finding(1, told)


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
