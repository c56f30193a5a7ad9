"""Finds in a run's output what went wrong."""

import re

from cifar.support.horovodrun import LogLine, read_line
from grader.common.contract import WORKERS
from grader.common.text import in_words

MAX_ERROR_LENGTH = 300  # characters of a worker's error message; one line of the report
WAITED = "still waited for the others"
UNEVEN = "All workers must make the same number of updates: give each equally many batches."
LAUNCHERS_OWN = ("Traceback", "Terminated", "During handling")  # such lines do not say what went wrong
# What the other workers say when one has ended or failed.
CONSEQUENCES = re.compile(
    r"Horovod has been shut down|Connection (reset|closed) by peer|: Broken pipe|Socket closed"
    r"|Timed out waiting \d+ms|Application timeout caused pair closure"
)
ERROR = re.compile(r"[\w.]*(Error|Exception)\b")
PLACE = re.compile(r'\s+File "([^"]+)", line (\d+)')
# In the path of a file:
NOT_THE_LEARNERS = re.compile(r"site-packages|lib/python3|/cifar/|<|/horovod/|/grader_observer/")
IN_AN_UPDATE = re.compile(r'/horovod/torch/optimizer\.py", line ')  # in a traceback: its hook or step
EXITED = re.compile(r"^Process (\d) exit with status code (-?\d+)\b", re.MULTILINE)
SIGNALLED = ("-9", "137")  # exit statuses of a worker that was killed
CAUSES = {  # a pattern that Horovod's error leaves in the log, and the advice that helps
    r"_allreduce_delay|backward_passes_per_step": "Step the optimizer that hvd.DistributedOptimizer returned.",
}


def last_error(log: str) -> str:
    """Return the last error that a worker printed, with its place in the learner's program.

    The launcher's own lines and mere consequences are left out.
    """
    lines = [line for line in map(read_line, log.split("\n")) if line.stream == "stderr"]
    said = [(number, line) for number, line in enumerate(lines)
            if re.match(r"\S", line.text) and not line.text.startswith(LAUNCHERS_OWN)]  # fmt: skip
    errors = [(number, line) for number, line in said if ERROR.match(line.text)] or said
    causes = [(number, line) for number, line in errors if not CONSEQUENCES.search(line.text)]
    silent = set(range(WORKERS)) - {line.rank for _, line in errors} if errors and not causes else set()
    if killed := _killed(log, silent):
        return f"Worker {killed} was killed, by the program itself or because it used too much memory."
    if not errors:
        return "The workers said nothing of it: run the command by hand."
    if not causes:
        waited = in_words("worker", sorted({line.rank for _, line in errors})).capitalize()
        return f"{waited} {WAITED} when one of them ended."
    number, line = causes[-1]
    known = [advice for pattern, advice in CAUSES.items() if re.search(pattern, log)]
    return " ".join(
        [f"Worker {line.rank} said: {line.text[:MAX_ERROR_LENGTH]}{_place(lines[:number], line.rank)}", *known]
    )


def _killed(log: str, silent: set[int]) -> str | None:
    """Return the rank of the worker that was killed and so ended the run, or None.

    The launcher ends the remaining workers after the first has failed. After 5 seconds it kills those that are left.
    So the first worker that the launcher names counts. If the others report only consequences, the workers that were
    `silent` count as well, unless a silent one ended first: then that one is the cause.
    """
    exited = EXITED.findall(log)
    relevant = exited[:1]
    if exited and int(exited[0][0]) not in silent:
        relevant += [(rank, status) for rank, status in exited if int(rank) in silent]
    return next((rank for rank, status in relevant if status in SIGNALLED), None)


def _place(before: list[LogLine], rank: int) -> str:
    """Return the last place in the learner's own files that a worker's traceback names, or an empty text."""
    for line in reversed(before):
        found = PLACE.match(line.text) if line.rank == rank else None
        if found and not NOT_THE_LEARNERS.search(found[1]):
            return f" ({found[1].rsplit('/', 1)[-1]}, line {found[2]})"
    return ""
