"""Judges how the run began and ended, and where its workers computed."""

import re
from collections import Counter

from cifar.support.horovodrun import read_line
from grader.common.contract import WORKERS
from grader.grading.checks.finding import Finding
from grader.grading.evidence import Evidence

MAX_ERROR_LENGTH = 300  # characters of a worker's error message; one line of the report


def begins(evidence: Evidence) -> Finding:
    """Four workers start and make updates"""
    counts = [len(worker.updates) for worker in evidence.workers]
    if min(counts) > 0:
        return Finding(1, f"{len(counts)} workers at work")
    silent = [str(rank) for rank, count in enumerate(counts) if count == 0]
    reason = evidence.run.stopped or (NO_OPTIMIZER if evidence.run.status == 0 else _last_error(evidence.log))
    return Finding(0, f"no update of a torch.optim optimizer on worker {', '.join(silent)}", reason)


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
        advice = _last_error(evidence.log)
        if len(set(counts)) > 1 and UNEVEN not in advice:
            advice = f"{advice} {UNEVEN}"
        return Finding(0, f"{seen}; exit status {evidence.run.status}", advice)
    if not evidence.ended_well():
        return Finding(0, f"{seen}; not every worker came to the end of its program", "Let the program end by itself.")
    if len(set(counts)) > 1:
        return Finding(0.5, seen, UNEVEN)
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
