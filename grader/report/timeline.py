"""Reads Horovod's timeline and picks one update out of it.

The timeline is a Chrome trace that rank 0 writes. Its end is often missing, because the run ended first.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

MAX_BYTES = 4 * 2**20  # bytes; an honest run's timeline of three updates has 0.1 MiB
MAX_MARKS = 100_000  # lines of the trace; an honest timeline has about a thousand
MAX_SECONDS = 1e6  # seconds since the timeline's start; no run lasts that long
MAX_DEPTH = 4  # levels of phases inside each other; Horovod nests two, an operation and a step of it
# Horovod has no such phase. It lasts from the end of one update's operations to the start of the next update's.
COMPUTE = "COMPUTE"

# This matches a JSON object that holds at most one other object. Its length is limited, so no content makes the search
# slow.
OBJECT = re.compile(rb"\{[^{}]{0,600}(?:\{[^{}]{0,300}\}[^{}]{0,100})?\}")
OPERATION = re.compile(r"^(grouped_)?(allreduce|broadcast|allgather|alltoall|reducescatter)\.")
NAMELESS = re.compile(r"noname\.\d+")


@dataclass(frozen=True)
class Event:
    """An event is a phase of an operation on a tensor.

    `start` is in seconds after Horovod's start. `seconds` is the duration.
    """

    tensor: str
    phase: str
    start: float
    seconds: float

    @property
    def end(self) -> float:
        return self.start + self.seconds


class _Mark(BaseModel, strict=True, allow_inf_nan=False):
    """A mark is a line of the trace.

    B begins a phase. E ends the phase that began last. M names a process, and here each process is a tensor.
    """

    ph: Literal["B", "E", "M"]
    pid: int
    ts: float = Field(0, ge=0, le=MAX_SECONDS * 1e6)
    name: str = Field("", max_length=200)
    args: dict[str, str] = {}


def read(content: bytes) -> list[Event]:
    """Return all whole phases in order of their end. Marks that cannot be read or lie after MAX_BYTES are left out."""
    names, shapes, begun, ended = {}, {}, defaultdict(list), []
    for mark in _marks(content):
        if mark.ph == "M":
            names[mark.pid] = mark.args.get("name") or names.get(mark.pid, "")
        elif mark.ph == "B":
            begun[mark.pid] = [*begun[mark.pid][-MAX_DEPTH:], mark]
        elif begun[mark.pid]:
            shapes[mark.pid] = mark.args.get("shape") or shapes.get(mark.pid, "")
            ended.append((begun[mark.pid].pop(), mark.ts))
    labels = {number: _tensor(name, shapes.get(number, "")) for number, name in names.items()}
    whole = [(mark, end - mark.ts) for mark, end in ended if end >= mark.ts]
    return [Event(labels.get(mark.pid, ""), mark.name, mark.ts / 1e6, length / 1e6) for mark, length in whole]


def _marks(content: bytes) -> Iterator[_Mark]:
    for match in islice(OBJECT.finditer(content[:MAX_BYTES]), MAX_MARKS):
        try:
            yield _Mark.model_validate_json(match.group())
        except ValidationError:  # it is another kind of event, or not from Horovod
            continue


def _tensor(name: str, shape: str) -> str:
    """Return the tensor's name.

    Horovod gives a tensor without a name a new number at each call, so the tensor's shape is used as its name.
    """
    return NAMELESS.sub(lambda _: shape or "no name", OPERATION.sub("", name))


def one_update(events: list[Event]) -> list[Event]:
    """Return a usual update near the middle of `events`. It begins with the worker's computation (COMPUTE).

    An update is usual if it has as many operations as most updates. The first update has no COMPUTE, because nothing
    comes before it, so it is taken only if no other update is usual. The result is empty if there is no update.
    """
    ordered = sorted(events, key=lambda event: event.start)
    updates = split_into_updates(ordered)
    if not updates:
        return []
    usual = Counter(map(_operations, updates)).most_common(1)[0][0]
    alike = [number for number, update in enumerate(updates) if number and _operations(update) == usual]
    chosen = alike[len(alike) // 2] if alike else 0
    before = [event.end for event in ordered if event.start < updates[chosen][0].start]
    if not chosen or max(before) >= updates[chosen][0].start:
        return updates[chosen]
    return [Event("", COMPUTE, max(before), updates[chosen][0].start - max(before)), *updates[chosen]]


def split_into_updates(ordered: list[Event]) -> list[list[Event]]:
    """Split events, in order of their start, into updates. Events before the first whole update are left out.

    Here is an example with two gradients, `a` and `b`, and three updates:

        a  b  (the worker computes)  a  b  (the worker computes)  a  b

    Horovod waits while the worker computes, and the wait ends with the gradient that is ready first. Here this is
    `a`, so it has the longest wait before it, and each `a` begins an update: [a, b], [a, b], [a, b].
    """
    waits = _waits(ordered)
    if not waits:
        return []
    first_tensor = waits.most_common(1)[0][0]
    cuts = [index for index, event in enumerate(ordered) if _begins(event) and event.tensor == first_tensor]
    return [ordered[start:stop] for start, stop in pairwise([*cuts, len(ordered)])]


def _waits(ordered: list[Event]) -> Counter[str]:
    """Return for each tensor how many seconds Horovod did nothing before operations on the tensor began."""
    waits: Counter[str] = Counter()
    if not ordered:
        return waits
    idle_since = ordered[0].start
    for event in ordered:
        if _begins(event):
            waits[event.tensor] += max(0.0, event.start - idle_since)
        idle_since = max(idle_since, event.end)
    return waits


def _begins(event: Event) -> bool:
    """Return whether an operation begins with this phase, in which the workers agree on what to do next."""
    return event.phase.startswith("NEGOTIATE")


def _operations(update: list[Event]) -> int:
    return sum(map(_begins, update))
