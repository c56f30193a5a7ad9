"""The rubric as data: each line has points, the lines it depends on, and a check that answers what was seen.

A check's docstring is what the line asks of the learner. It returns the share of the points (0 to 1), what was seen,
and what to change. A line whose prerequisite failed is not judged: one mistake is explained once.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from grader import observation
from grader.evaluate import agrees
from grader.evidence import Evidence
from grader.profile import WORKERS


@dataclass(frozen=True)
class Finding:
    """Outcome of a check: share of the points, what was seen, and what to change (empty with full points)."""

    share: float
    seen: str
    advice: str = ""


Check = Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Line:
    """A line of the rubric. `needs`: ids of lines that must have full points before this one can be judged."""

    id: str
    points: int
    check: Check
    needs: tuple[str, ...] = ()

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
    """All workers train to the end without an error, in equally many updates, within the time limit"""
    counts = [len(worker.updates) for worker in seen.workers]
    told = f"updates by worker: {', '.join(map(str, counts))}; {seen.run.seconds:.0f} s"
    if seen.run.stopped:
        return Finding(0, told, seen.run.stopped)
    if seen.run.status != 0:
        return Finding(0, f"{told}; exit status {seen.run.status}", _last_error(seen.log))
    if len(set(counts)) > 1:
        return Finding(0, told, "All workers must make the same number of updates: give each equally many batches.")
    return Finding(1, told)


def _last_error(log: str) -> str:
    """The last thing that a worker complained of; the launcher's own lines about it are left out."""
    said = re.findall(r"^\[(\d+)\]<stderr>:(\S.*)$", log, flags=re.MULTILINE)
    said = [(rank, text) for rank, text in said if not text.startswith(("Traceback", "Terminated"))]
    errors = [(rank, text) for rank, text in said if re.match(r"[\w.]*(Error|Exception)\b", text)] or said
    if not errors:
        return "The workers said nothing of it: run the command by hand."
    rank, text = errors[-1]
    return f"Worker {rank} said: {text[:300]}"


def same_start(seen: Evidence) -> Finding:
    """All workers start from the same weights"""
    starts = [worker.first.start if worker.first else None for worker in seen.workers]
    odd = [str(rank) for rank, value in enumerate(starts) if value != starts[0]]
    if odd:
        advice = "Call hvd.broadcast_parameters(net.state_dict(), root_rank=0) before the first update."
        return Finding(0, f"worker {', '.join(odd)} started from other weights than worker 0", advice)
    return Finding(1, f"hash {starts[0]:08x} on all {len(starts)} workers before the first update")


def averaged(seen: Evidence) -> Finding:
    """Gradients are averaged over the workers at every update, so that they train one network"""
    sizes = {worker.first.size for worker in seen.workers}
    if sizes != {WORKERS}:
        told = (
            f"Horovod connects {' or '.join(map(str, sorted(sizes)))} of {WORKERS} workers: {WORKERS} separate networks"
        )
        return Finding(0, told, "Call hvd.init() first, then wrap the optimizer in hvd.DistributedOptimizer.")
    updates = min(len(worker.updates) for worker in seen.workers)
    needed = 2 * (WORKERS - 1) * seen.workers[0].first.bytes * updates
    if seen.run.loopback_bytes is None:
        return _equal_weights(seen, "GPUs exchange directly")
    sent = seen.run.loopback_bytes
    told = f"{sent / 1e6:,.0f} MB between workers ({needed / 1e6:,.0f} MB are {updates} averaged updates)"
    if sent < 0.3 * needed:  # compressed gradients need half as many bytes
        advice = "Wrap the optimizer, and step it: hvd.DistributedOptimizer(optimizer, named_parameters=...)."
        return Finding(0, f"{told}: {WORKERS} separate networks", advice)
    return _equal_weights(seen, told)


def _equal_weights(seen: Evidence, told: str) -> Finding:
    """Whether averaging has kept the workers' weights equal, if they started equal."""
    updates = min(len(worker.updates) for worker in seen.workers)
    differ = observation.first_difference(seen.workers)
    if differ:
        advice = "All workers must apply the same averaged gradients at every update, with the same rate."
        return Finding(0, f"{told}; weights differ between workers after update {differ}", advice)
    if differ == 0:  # they started apart: the line `same_start` says so; here only the exchange counts
        return Finding(1, told)
    return Finding(1, f"{told}; weights equal on all workers after each of {updates} updates")


def shards(seen: Evidence) -> Finding:
    """Each training image is used once an epoch, by one worker, in a new order each epoch"""
    count = len(seen.metrics) or seen.profile.epochs
    epochs = observation.epochs(seen.workers, count, seen.profile.train_images)
    covered, repeated = min(epoch.covered for epoch in epochs), max(epoch.repeated for epoch in epochs)
    told = f"an epoch uses {covered:.1%} of the training images, {repeated:.1%} more than once"
    if repeated > 0.01:
        advice = f"Give each worker its own {1 / WORKERS:.0%} of the shuffle: shard(order, hvd.rank(), hvd.size())."
        return Finding(0, told, advice)
    if covered < 0.97:
        return Finding(0, told, "Together the workers must use all training images: check rank and size in the shard.")
    if any(observation.same_order(worker, count) for worker in seen.workers):
        advice = "Shuffle anew each epoch: shuffle(len(train), seed, epoch)."
        return Finding(0.5, f"{told}, always in the same order", advice)
    return Finding(1, told)


def warmup(seen: Evidence) -> Finding:
    """The learning rate is warmed up: it starts low and climbs to its scaled value"""
    rates = [max(update.lr) for update in seen.workers[0].updates]
    peak = max(rates)
    at = rates.index(peak)
    told = f"rate {rates[0]:.4g} at update 1, highest {peak:.4g} at update {at + 1}, {rates[-1]:.4g} at the last"
    if rates[0] > 0.5 * peak or at < 0.02 * len(rates):
        advice = "Scale the rate by hvd.size(), and climb to it over the first tenth of the updates (warmup_factor)."
        return Finding(0, told, advice)
    return Finding(1, told)


def checkpoint(seen: Evidence) -> Finding:
    """model.pt is the state dict of the course's ResNet9(width=16)"""
    if seen.checkpoint_error:
        return Finding(0, seen.checkpoint_error, "After training, on rank 0: training.save(net, args.output_dir).")
    return Finding(1, "model.pt loads into ResNet9(width=16)")


def metrics(seen: Evidence) -> Finding:
    """metrics.jsonl has a line an epoch, and its last test accuracy is what the grader measures"""
    if seen.metrics_error or not seen.metrics:
        return Finding(0, seen.metrics_error or "metrics.jsonl is empty", "On rank 0, add a line after each epoch.")
    reported = seen.metrics[-1].test_accuracy
    told = f"reported {reported:.2%} after {len(seen.metrics)} epochs, measured {seen.visible_accuracy:.2%}"
    if not agrees(reported, seen.visible_accuracy, seen.visible_images):
        return Finding(0, told, "Sum hits over all workers' test images; average the BN statistics before you test.")
    return Finding(1, told)


def target(seen: Evidence) -> Finding:
    """The network reaches the target on test images that the run never saw"""
    told = f"{seen.secret_accuracy:.2%} of the secret test images; the target is {seen.profile.target:.2%}"
    if seen.secret_accuracy < seen.profile.target:
        advice = f"{WORKERS} workers make 1/{WORKERS} of the updates: scale the rate by hvd.size() and warm it up."
        return Finding(0, told, advice)
    return Finding(1, told)


RUBRIC = (
    Line("begins", 5, begins),
    Line("ends", 10, ends, needs=("begins",)),
    Line("same_start", 10, same_start, needs=("begins",)),
    Line("averaged", 25, averaged, needs=("begins",)),
    Line("shards", 15, shards, needs=("ends",)),
    Line("warmup", 10, warmup, needs=("ends",)),
    Line("checkpoint", 5, checkpoint, needs=("ends",)),
    Line("metrics", 5, metrics, needs=("same_start", "checkpoint")),
    Line("target", 15, target, needs=("checkpoint",)),
)
MUST_PASS = ("averaged", "target")  # no pass without these in full
