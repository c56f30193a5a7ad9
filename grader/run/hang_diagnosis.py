"""Tells the learner which workers of a hanging run wait for which collective, at which update, and why that may be."""

import re
from collections import defaultdict
from dataclasses import dataclass

from pydantic import TypeAdapter

from grader.common import untrusted
from grader.common.contract import WORKERS
from grader.common.text import in_words, one_line
from grader.run.hooks.grader_observer.log_format import Frame
from grader.sandbox.run_paths import RunPaths

FRAMES = TypeAdapter(list[Frame])  # the innermost call comes first
MAX_STACK_BYTES = 65536  # of a stack file, from its end; one stack has less than 10,000 bytes
MAX_FILE_LENGTH = 60  # characters of a file's name that are shown
GRADIENTS = "the all-reduce of the gradients"
# Functions of Horovod and of the course in which a worker waits for the others, in a learner's words.
COLLECTIVES = {
    "wait_for_gradients": GRADIENTS,
    "broadcast_parameters": "broadcast_parameters",
    "broadcast_optimizer_state": "broadcast_optimizer_state",
    "broadcast_object": "broadcast_object",
    "allgather_object": "allgather_object",
    "synchronize": "a collective",
    "barrier": "barrier",
    "join": "join",
    "shutdown": "the end of Horovod",
}
IMPORT = "<frozen importlib"  # the files of Python's import system begin so
COMPILER = re.compile(r"/torch/_(dynamo|inductor)/")  # the files of torch.compile
PUBLIC = re.compile(r"^(grouped_)?(allreduce|broadcast|allgather|alltoall|reducescatter)_?$")


@dataclass(frozen=True)
class Position:
    """Where a worker is. `waits_for` is empty if it is in no collective. `line` is 0 if its stack is not known."""

    updates: int
    waits_for: str
    file: str
    line: int

    def describe(self, ranks: list[int]) -> str:
        """Says in words that the workers `ranks` are here."""
        where = f" ({self.file}, line {self.line})" if self.line else ""
        several = len(ranks) > 1
        wait, are = ("wait", "are") if several else ("waits", "is")
        doing = f"{wait} for {self.waits_for}" if self.waits_for else f"{are} in no collective"
        return f"{in_words('worker', ranks)} {doing}{where} after update {self.updates}"


def describe(seconds: float, updates: list[int], running: set[int], paths: RunPaths) -> str:
    """Returns one line for the learner about a run that has made no update for `seconds`.

    `updates` is how many updates each worker has made. `running` are the ranks whose processes still run.
    """
    ended = [rank for rank in range(WORKERS) if rank not in running]
    positions = {rank: position(paths, rank, updates[rank]) for rank in range(WORKERS) if rank in running}
    ranks_by_position = defaultdict(list)
    for rank, where in positions.items():
        ranks_by_position[where].append(rank)
    parts = [where.describe(ranks) for where, ranks in ranks_by_position.items()]
    parts += [f"{in_words('worker', ended)} {'have' if len(ended) > 1 else 'has'} ended"] if ended else []
    mistake = _likely_mistake(list(positions.values()), updates, ended)
    return f"Stopped: no update for {seconds:.0f} s. {'; '.join(parts)}. {mistake}"


def compiling(paths: RunPaths) -> bool:
    """Return whether a worker is in torch.compile, by the last stack that its observer wrote."""
    stacks = (_last_stack(paths, rank) for rank in range(WORKERS))
    return any(COMPILER.search(frame.file) for stack in stacks for frame in stack)


def starting(paths: RunPaths, running: set[int]) -> bool:
    """Return whether one of the `running` ranks has not begun, or still imports its modules, by its last stack.

    This is also true while no worker has been seen.
    """
    stacks = [_last_stack(paths, rank) for rank in range(WORKERS) if rank in running]
    return not stacks or any(not stack or any(frame.file.startswith(IMPORT) for frame in stack) for stack in stacks)


def _likely_mistake(positions: list[Position], updates: list[int], ended: list[int]) -> str:
    waiting = [where for where in positions if where.waits_for]
    if not waiting:
        return "No worker waits for another one: is there an endless loop?"
    if len(set(updates)) > 1 or (ended and len(waiting) == len(positions)):
        return "All workers need equally many batches: one that has fewer leaves the others waiting."
    if any(updates) and len({where.waits_for == GRADIENTS for where in waiting}) > 1:
        return (
            "Some have finished the epoch, others have not: give all workers equally many batches, and call the same "
            "collectives on all of them (is one inside `if hvd.rank() == 0`?)."
        )
    if len({(where.file, where.line) for where in positions}) > 1 or ended:
        return "Every worker must call the same collectives in the same order: is one inside `if hvd.rank() == 0`?"
    return "All wait in the same place: do they call it with tensors of the same names and shapes?"


def position(paths: RunPaths, rank: int, updates: int) -> Position:
    """Where a worker is, by the last stack that its observer wrote."""
    frames = _last_stack(paths, rank)
    own = next((frame for frame in frames if _is_learners(frame.file, paths)), None)
    if own is None:
        return Position(updates, _collective(frames), file="", line=0)
    file = one_line(own.file.rsplit("/", 1)[-1][:MAX_FILE_LENGTH])
    return Position(updates, _collective(frames), file, own.line)


def _last_stack(paths: RunPaths, rank: int) -> list[Frame]:
    try:
        lines = untrusted.read(paths.stack(rank), MAX_STACK_BYTES, tail=True).split(b"\n")[:-1]
        return FRAMES.validate_json(lines[-1])
    except (untrusted.UnreadableError, IndexError, ValueError):
        return []


def _is_learners(file: str, paths: RunPaths) -> bool:
    return not file.startswith(("/", "<")) or file.startswith(("/submission/source/", f"{paths.source}/"))


def _collective(frames: list[Frame]) -> str:
    """What a stack waits for. The outermost call into Horovod is the one that the learner knows."""
    calls = [frame for frame in frames if "/horovod/" in frame.file or frame.function in COLLECTIVES]
    for file, _, name in reversed(calls):
        if name in COLLECTIVES and name != "synchronize":
            return COLLECTIVES[name]
        if PUBLIC.match(name):
            return name
        if name == "step" or (name == "synchronize" and "optimizer" in file):
            return GRADIENTS
    return "a collective" if calls else ""
