"""Judges the files that the run wrote."""

import math
import statistics
from collections.abc import Sequence

from grader.common.contract import WORKERS
from grader.common.text import in_words
from grader.grading.checkpoint import Measured, agrees
from grader.grading.checks.finding import Finding
from grader.grading.evidence import Evidence, Missing
from grader.run.worker_log import Update
from grader.sandbox.guest_scripts.classify_images import NO_STATE_DICT, NOT_FINITE, OTHER_NETWORK, PREFIX

MAX_WRITES = WORKERS - 2  # of one file between two updates; if all workers write it, the monitor may miss one write
MAX_HITS_OF_ONE = 0.5  # times the measured accuracy; the hits of one worker of four are about a quarter
MAX_JUMP = 3  # times the usual step
MAX_JUMPS = 2  # of a run; slow weights that are mixed in jump more often, and throughout
MAX_JUMP_SHARE = 0.05  # of the updates of a long run
MIN_WAY_AFTER = 0.5  # times the length of a jump; a program that trains on goes at least so far
ALMOST_AN_EPOCH = 0.05  # of an epoch's images; a loader may drop the last, smaller batch
MAX_OTHER_ROUNDING = 0.001  # of an accuracy; computed again on the same machine, it differs by less

UNUSABLE = {  # parts of the reasons that the second sandbox gives, and what to change
    NOT_FINITE: "Lower the learning rate, and look at the loss of each epoch: from where on is it nan?",
    NO_STATE_DICT: "Save only its state dict: torch.save(net.state_dict(), path), or training.save(net, folder).",
    PREFIX: "Save the network that is inside the wrapper: net.module.state_dict().",
    OTHER_NETWORK: "Train and save the starter's network, ResNet9(width=16).",
}


def checkpoint(evidence: Evidence) -> Finding:
    """model.pt is the state dict of the ResNet9(width=16) that the workers trained, after their last update"""
    if not evidence.checkpoint:
        return Finding(0, evidence.checkpoint.reason, _how_to_save(evidence.checkpoint.reason))
    last = [worker for worker in evidence.workers if evidence.checkpoint.is_after(worker.updates[-1])]
    if last:
        if replaced := _replaced(evidence.checkpoint, last[0].updates):
            advice = "Go on from the last weights: the best test accuracy of several epochs is no honest estimate."
            return Finding(0, replaced, advice)
        return Finding(1, f"weights {evidence.checkpoint.weights:08x}, as after the last update")
    earlier = [update.update for update in evidence.workers[0].updates if evidence.checkpoint.is_after(update)]
    if earlier:
        advice = "Save after the last epoch: the best test accuracy of several is no honest estimate."
        return Finding(0, f"the weights as after update {earlier[-1]}, not the last", advice)
    advice = "Save the state dict of the network that the workers trained, after its last update."
    return Finding(0, "weights that the workers had after none of their updates", advice)


def _replaced(checkpoint: Measured, updates: Sequence[Update]) -> str:
    """Say where a worker's weights were replaced, or return an empty text. Its last weights are the checkpoint's."""
    equal = [checkpoint.is_after(update) for update in updates]
    first = equal.index(True)
    if not all(equal[first:]):
        back = len(equal) - equal[::-1].index(False)
        return (
            f"before update {updates[back].update} the weights went back to those after update {updates[first].update}"
        )
    if jump := _jump(updates):
        return f"before update {jump.update} the weights moved by {jump.moved:.3g} without a step"
    return ""


def _jump(updates: Sequence[Update]) -> Update | None:
    """Return the update before which the weights moved far without a step, if the steps after it did not lead far away.

    So the result is where the weights were put, and not where training took them. A program that moves its weights
    again and again, from the first half on, mixes slow weights in, and is not meant.
    """
    steps = [update.step if update.step and math.isfinite(update.step) else 0.0 for update in updates]
    far = MAX_JUMP * statistics.median(filter(None, steps)) if any(steps) else math.inf
    jumps = [index for index, update in enumerate(updates) if (update.moved or 0.0) > far]
    often = len(jumps) > max(MAX_JUMPS, MAX_JUMP_SHARE * len(updates))
    if often and jumps[0] < len(updates) / 2:
        return None
    for index in jumps:
        if sum(steps[index:]) < MIN_WAY_AFTER * updates[index].moved:
            return updates[index]
    return None


def _how_to_save(reason: str) -> str:
    """What to change where model.pt cannot be used. `reason` is the evidence's."""
    told = [advice for part, advice in UNUSABLE.items() if part in reason]
    return told[0] if told else "On rank 0, after training: training.save(net, args.output_dir)."


def one_writer(evidence: Evidence) -> Finding:
    """One worker writes the results"""
    writers = {rank: worker.wrote() for rank, worker in enumerate(evidence.workers) if worker.wrote()}
    shared = sorted({name for rank, names in writers.items() for name in names
                     if sum(name in other for other in writers.values()) > 1})  # fmt: skip
    advice = "Write on rank 0 alone: if hvd.rank() == 0."
    if shared:
        who = in_words("worker", [rank for rank, names in writers.items() if shared[0] in names])
        return Finding(0, f"{shared[0]} was written by {who}", advice, certain=True)
    often = {name: count for name, count in (evidence.run.outside.writes or {}).items() if count > MAX_WRITES}
    if often:
        name, count = max(often.items(), key=lambda item: item[1])
        return Finding(0, f"{name} was written {count} times without an update in between", advice)
    if not writers and not evidence.run.outside.writes:
        return Finding(0, "no file was written", "Write model.pt and metrics.jsonl into args.output_dir, on rank 0.")
    return Finding(1, f"written by worker {', '.join(map(str, writers)) or 0}")


def metrics(evidence: Evidence) -> Finding:
    """metrics.jsonl has a line an epoch, and its last test accuracy is what the grader measures"""
    if not evidence.metrics:
        reason = evidence.metrics.reason if isinstance(evidence.metrics, Missing) else "metrics.jsonl is empty"
        return Finding(0, reason, "On rank 0, add a line after each epoch.")
    reported = evidence.metrics[-1].test_accuracy
    if not evidence.checkpoint:
        return Finding(0, f"nothing to compare with: {evidence.checkpoint.reason}", "See the line on model.pt.")
    if len(evidence.metrics) < (seen := _epochs_seen(evidence)):
        wrote = f"{len(evidence.metrics)} line{'s' * (len(evidence.metrics) != 1)} for {seen} epochs"
        return Finding(0, wrote, "On rank 0, add a line after each epoch.")
    seen = f"reported {reported:.2%} after {len(evidence.metrics)} epochs, measured {evidence.checkpoint.visible:.2%}"
    if not agrees(reported, evidence.checkpoint.visible, evidence.visible_images):
        return Finding(0, seen, _other_accuracy(reported, evidence.checkpoint.visible))
    if _of_one_shard(evidence):
        seen = f"{seen}; every epoch's accuracy is a number of hits among {_shard(evidence):,} test images"
        return Finding(0, seen, "Add up the hits of all workers: correct = hvd.allreduce(correct, op=hvd.Sum).")
    return Finding(1, seen)


def _epochs_seen(evidence: Evidence) -> int:
    """The number of epochs whose training images the workers used, but not more than they were asked for."""
    used = sum(len(worker.images()) for worker in evidence.workers) / evidence.profile.train_images
    return min(int(used + ALMOST_AN_EPOCH), evidence.profile.epochs)


def _other_accuracy(reported: float, measured: float) -> str:
    """What to change if the reported accuracy is not the measured one."""
    if reported < MAX_HITS_OF_ONE * measured:
        return "Much less is reported than was measured: add up the hits of all workers before you divide."
    return (
        "Test in net.eval() mode, on all test images, with the statistics of batch norm averaged over the workers. "
        "The images must be those of cifar.data.normalise, in training and in the test."
    )


def _of_one_shard(evidence: Evidence) -> bool:
    """Whether the reported accuracies look like those of one worker's test images, which may be near by chance.

    Hits among a worker's images, divided by their number, are whole when multiplied by it. An accuracy on all images is
    so by chance in one epoch of four. So all epochs must be so, and the last one must differ from what was measured.
    """
    hits = [line.test_accuracy * _shard(evidence) for line in evidence.metrics]
    whole = all(math.isclose(hit, round(hit), abs_tol=1e-4) for hit in hits)
    return whole and abs(evidence.metrics[-1].test_accuracy - evidence.checkpoint.visible) > MAX_OTHER_ROUNDING


def _shard(evidence: Evidence) -> int:
    """The number of test images that rank 0 has, if the workers share them."""
    return -(-evidence.visible_images // WORKERS)
