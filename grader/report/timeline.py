"""Reads Horovod's timeline (a Chrome trace that rank 0 writes, often cut off) and picks one update out of it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

MAX_BYTES = 4 * 2**20  # of three updates an honest run has 0.1 MiB
MAX_MARKS = 100_000
MAX_SECONDS = 1e6
DEPTH = 4  # Horovod nests two: an operation, and what it does
COMPUTE = "COMPUTE"  # not Horovod's: from the end of one update's operations to the next one's first

# An object with at most one object in it. Bounded, so that no content makes the search slow.
OBJECT = re.compile(rb"\{[^{}]{0,600}(?:\{[^{}]{0,300}\}[^{}]{0,100})?\}")
OPERATION = re.compile(r"^(grouped_)?(allreduce|broadcast|allgather|alltoall|reducescatter)\.")
NAMELESS = re.compile(r"noname\.\d+")


@dataclass(frozen=True)
class Event:
    """A phase of an operation on a tensor: its start after Horovod's, and its duration, in seconds."""

    tensor: str
    phase: str
    start: float
    seconds: float

    @property
    def end(self) -> float:
        return self.start + self.seconds


class _Mark(BaseModel, strict=True, allow_inf_nan=False):
    """A line of the trace: B begins a phase, E ends the last one begun, M names a process, which is a tensor."""

    ph: Literal["B", "E", "M"]
    pid: int
    ts: float = Field(0, ge=0, le=MAX_SECONDS * 1e6)
    name: str = Field("", max_length=200)
    args: dict[str, str] = {}


def read(content: bytes) -> list[Event]:
    """All whole phases, in order of their end; what cannot be read is left out. Looks at the first MAX_BYTES only."""
    names, shapes, begun, ended = {}, {}, defaultdict(list), []
    for mark in _marks(content):
        if mark.ph == "M":
            names[mark.pid] = mark.args.get("name") or names.get(mark.pid, "")
        elif mark.ph == "B":
            begun[mark.pid] = [*begun[mark.pid][-DEPTH:], mark]
        elif begun[mark.pid]:
            shapes[mark.pid] = mark.args.get("shape") or shapes.get(mark.pid, "")
            ended.append((begun[mark.pid].pop(), mark.ts))
    labels = {number: _tensor(name, shapes.get(number, "")) for number, name in names.items()}
    whole = [(mark, end - mark.ts) for mark, end in ended if end >= mark.ts]
    return [Event(labels.get(mark.pid, ""), mark.name, mark.ts / 1e6, length / 1e6) for mark, length in whole]


def _marks(content: bytes) -> Iterator[_Mark]:
    for found in islice(OBJECT.finditer(content[:MAX_BYTES]), MAX_MARKS):
        try:
            yield _Mark.model_validate_json(found.group())
        except ValidationError:  # another kind of event, or none of Horovod's
            continue


def _tensor(name: str, shape: str) -> str:
    """The tensor's name alone; one without a name, numbered anew at every call, is called by its shape."""
    return NAMELESS.sub(lambda _: shape or "no name", OPERATION.sub("", name))


def one_update(events: list[Event]) -> list[Event]:
    """A usual update near the middle of `events`: what the worker computed for it (COMPUTE), then Horovod's phases.

    An update begins with the tensor that Horovod has waited for longest, all in all: the first gradient to be ready.
    The first of several updates comes without COMPUTE, and is only taken if no other is like it. Empty if `events` is.
    """
    ordered = sorted(events, key=lambda event: event.start)
    updates = _updates(ordered)
    if not updates:
        return []
    usual = Counter(map(_operations, updates)).most_common(1)[0][0]
    alike = [number for number, update in enumerate(updates) if number and _operations(update) == usual]
    chosen = alike[len(alike) // 2] if alike else 0
    before = [event.end for event in ordered if event.start < updates[chosen][0].start]
    if not chosen or max(before) >= updates[chosen][0].start:
        return updates[chosen]
    return [Event("", COMPUTE, max(before), updates[chosen][0].start - max(before)), *updates[chosen]]


def _updates(ordered: list[Event]) -> list[list[Event]]:
    """Events in order of their start, an update each; those before the first update's beginning are left out."""
    waited, end = Counter(), float("inf")
    for event in ordered:
        if _begins(event):
            waited[event.tensor] += max(0.0, event.start - end)
        end = event.end if end == float("inf") else max(end, event.end)
    if not waited:
        return []
    first = waited.most_common(1)[0][0]
    cuts = [number for number, event in enumerate(ordered) if _begins(event) and event.tensor == first]
    return [ordered[start:stop] for start, stop in pairwise([*cuts, len(ordered)])]


def _begins(event: Event) -> bool:
    """Whether an operation begins with this phase: the workers agree on what to do next."""
    return event.phase.startswith("NEGOTIATE")


def _operations(update: list[Event]) -> int:
    return sum(map(_begins, update))
