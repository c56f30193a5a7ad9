"""Says of a run that no longer moves which workers wait for which collective, at which update, and why that may be."""

import re
from collections import defaultdict
from dataclasses import dataclass

from pydantic import TypeAdapter

from grader.common import untrusted
from grader.common.contract import WORKERS
from grader.common.text import one_line
from grader.sandbox.run_paths import RunPaths

Frame = tuple[str, int, str]  # file, line, function
FRAMES = TypeAdapter(list[Frame])  # innermost call first
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
PUBLIC = re.compile(r"^(grouped_)?(allreduce|broadcast|allgather|alltoall|reducescatter)_?$")


@dataclass(frozen=True)
class Place:
    """Where a worker stands. `waits_for` is empty if it is in no collective; `line` 0 if its stack is not known."""

    updates: int
    waits_for: str
    file: str
    line: int

    def told(self, ranks: list[int]) -> str:
        """In words, of the workers that stand here."""
        where = f" ({self.file}, line {self.line})" if self.line else ""
        several = len(ranks) > 1
        wait, are = ("wait", "are") if several else ("waits", "is")
        doing = f"{wait} for {self.waits_for}" if self.waits_for else f"{are} in no collective"
        return f"{_workers(ranks)} {doing}{where} after update {self.updates}"


def describe(seconds: float, updates: list[int], running: set[int], paths: RunPaths) -> str:
    """One line for the learner about a run that has not moved for so long."""
    gone = [rank for rank in range(WORKERS) if rank not in running]
    places = {rank: place(paths, rank, updates[rank]) for rank in range(WORKERS) if rank in running}
    alike = defaultdict(list)
    for rank, where in places.items():
        alike[where].append(rank)
    told = [where.told(ranks) for where, ranks in alike.items()]
    told += [f"{_workers(gone)} {'have' if len(gone) > 1 else 'has'} ended"] if gone else []
    return f"Stopped: no update for {seconds:.0f} s. {'; '.join(told)}. {_likely(places, updates, gone)}"


def _workers(ranks: list[int]) -> str:
    return f"worker{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _likely(places: dict[int, Place], updates: list[int], gone: list[int]) -> str:
    """The likely mistake."""
    waiting = [where for where in places.values() if where.waits_for]
    if not waiting:
        return "No worker waits for another one: is there an endless loop?"
    if len(set(updates)) > 1 or (gone and len(waiting) == len(places)):
        return "All workers need equally many batches: one that has fewer leaves the others waiting."
    if any(updates) and len({where.waits_for == GRADIENTS for where in waiting}) > 1:
        return (
            "Some have finished the epoch, others have not: give all workers equally many batches, and call the same "
            "collectives on all of them (is one inside `if hvd.rank() == 0`?)."
        )
    if len({(where.file, where.line) for where in places.values()}) > 1 or gone:
        return "Every worker must call the same collectives in the same order: is one inside `if hvd.rank() == 0`?"
    return "All wait in the same place: do they call it with tensors of the same names and shapes?"


def place(paths: RunPaths, rank: int, updates: int) -> Place:
    """Where a worker stands, by the last stack that its observer wrote."""
    frames = _last_stack(paths, rank)
    own = next((frame for frame in frames if _is_learners(frame[0], paths)), None)
    file, line = (one_line(own[0].rsplit("/", 1)[-1][:60]), own[1]) if own else ("", 0)
    return Place(updates, _collective(frames), file, line)


def _last_stack(paths: RunPaths, rank: int) -> list[Frame]:
    try:
        lines = untrusted.read(paths.stack(rank), 65536, tail=True).split(b"\n")[:-1]
        return FRAMES.validate_json(lines[-1])
    except (untrusted.UnreadableError, IndexError, ValueError):
        return []


def _is_learners(file: str, paths: RunPaths) -> bool:
    return not file.startswith(("/", "<")) or file.startswith(("/submission/source/", f"{paths.source}/"))


def _collective(frames: list[Frame]) -> str:
    """What a stack waits for: the outermost call into Horovod says it best."""
    calls = [(file, name) for file, _, name in frames if "/horovod/" in file or name in COLLECTIVES]
    for file, name in reversed(calls):
        if name in COLLECTIVES and name != "synchronize":
            return COLLECTIVES[name]
        if PUBLIC.match(name):
            return name
        if name == "step" or (name == "synchronize" and "optimizer" in file):
            return GRADIENTS
    return "a collective" if calls else ""
