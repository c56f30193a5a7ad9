"""Judges how the run began and ended, and where its workers computed."""

from collections import Counter

from grader.common.contract import WORKERS
from grader.common.text import in_words
from grader.grading.checks.finding import Finding
from grader.grading.error_messages import IN_AN_UPDATE, UNEVEN, WAITED, last_error
from grader.grading.evidence import Evidence


def begins(evidence: Evidence) -> Finding:
    """Four workers start and make updates"""
    counts = [len(worker.updates) for worker in evidence.workers]
    if min(counts) > 0:
        return Finding(1, f"{len(counts)} workers at work")
    silent = in_words("worker", [rank for rank, count in enumerate(counts) if count == 0])
    reason = evidence.run.stopped or (NO_OPTIMIZER if evidence.run.status == 0 else last_error(evidence.log))
    return Finding(0, f"no update of a torch.optim optimizer on {silent}", reason)


NO_OPTIMIZER = (
    "The program ended without an error. The grader sees an update when a torch.optim optimizer makes a step: let one "
    "change the weights, for example torch.optim.SGD."
)


def ends(evidence: Evidence) -> Finding:
    """All workers train to the end without an error, in equally many updates, within the limits"""
    counts = [len(worker.updates) for worker in evidence.workers]
    seen = f"updates by worker: {', '.join(map(str, counts))}; {evidence.run.seconds:.0f} s"
    if evidence.run.stopped:
        return Finding(0, seen, evidence.run.stopped)
    if evidence.run.status != 0:
        said = last_error(evidence.log)
        advice = " ".join(filter(None, [said, _of_waiting(WAITED in said, counts, evidence)]))
        return Finding(0, f"{seen}; exit status {evidence.run.status}", advice)
    if not evidence.ended_well():
        return Finding(0, f"{seen}; not every worker came to the end of its program", "Let the program end by itself.")
    if len(set(counts)) > 1:
        return Finding(0.5, seen, UNEVEN)
    return Finding(1, seen)


def _of_waiting(waited: bool, counts: list[int], evidence: Evidence) -> str:
    """What to change if workers made different numbers of updates, or still waited for another one as it ended.

    `counts` are the updates of each worker. One that waits in an update has not made it.
    """
    if waited and set(counts) == {evidence.profile.updates()} and not IN_AN_UPDATE.search(evidence.log):
        return AFTER_TRAINING
    return UNEVEN if waited or len(set(counts)) > 1 else ""


AFTER_TRAINING = (
    "All updates are made, so this is a call after the training. All workers must make it, as hvd.barrier() or "
    "hvd.allreduce(...)."
)


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
