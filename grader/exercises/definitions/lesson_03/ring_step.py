"""This exercise asks for one step of the first half of ring all-reduce (reduce-scatter), for all workers at once."""

import copy
import math
from collections.abc import Callable

import numpy as np

from grader.exercises import Compared, Mistake, TestCase

Vector = list[float]
State = list[list[Vector]]  # a state holds the chunks of all workers: state[worker][chunk]


def _passed(chunks: State, sent: Callable[[int], int], way: int, join: Callable[[Vector, Vector], Vector]) -> State:
    """Return the state after each worker r has sent its chunk `sent(r)` to worker r + `way`.

    The receiver joins the chunk with its own by `join`.
    """
    size, after = len(chunks), copy.deepcopy(chunks)
    for rank in range(size):
        chunk, receiver = sent(rank) % size, (rank + way) % size
        after[receiver][chunk] = join(chunks[receiver][chunk], chunks[rank][chunk])
    return after


def _added(own: Vector, received: Vector) -> Vector:
    return [one + other for one, other in zip(own, received, strict=True)]


def ring_step(chunks: State, step: int) -> State:
    """Return the state of all workers after the step."""
    return _passed(chunks, lambda rank: rank - step, 1, _added)


def _backwards(chunks: State, step: int) -> State:
    return _passed(chunks, lambda rank: rank - step, -1, _added)


def _replaced(chunks: State, step: int) -> State:
    return _passed(chunks, lambda rank: rank - step, 1, lambda own, received: received)


def _wrong_sign(chunks: State, step: int) -> State:
    return _passed(chunks, lambda rank: rank + step, 1, _added)


def _received(chunks: State, step: int) -> State:
    return _passed(chunks, lambda rank: rank + 1 - step, 1, _added)


def _from_the_start(chunks: State, step: int) -> State:
    for number in range(step + 1):
        chunks = ring_step(chunks, number)
    return chunks


def _always_own(chunks: State, step: int) -> State:
    return _passed(chunks, lambda rank: rank, 1, _added)


def _always_first(chunks: State, step: int) -> State:
    return _passed(chunks, lambda rank: step, 1, _added)


def _moved(chunks: State, step: int) -> State:
    size, after = len(chunks), ring_step(chunks, step)
    for rank in range(size):
        sent = (rank - step) % size
        after[rank][sent] = [0.0] * len(after[rank][sent])
    return after


def _all_chunks(chunks: State, step: int) -> State:
    pairs = [(chunks[rank], chunks[rank - 1]) for rank in range(len(chunks))]
    return [[_added(*both) for both in zip(own, received, strict=True)] for own, received in pairs]


def _reduced(chunks: State, step: int) -> State:
    total = [[math.fsum(values) for values in zip(*column, strict=True)] for column in zip(*chunks, strict=True)]
    return [total for _ in chunks]


MISTAKES = (
    Mistake("backwards", _backwards, "Your chunks travel the wrong way: worker r sends to r + 1, not to r - 1."),
    Mistake(
        "replaced", _replaced,
        "The receiver adds what it gets to its own chunk; putting it in its place belongs to the second half.",
    ),
    Mistake(
        "wrong sign", _wrong_sign,
        "You count the wrong way: in step 1 worker r sends the chunk that worker r - 1 sent in step 0.",
    ),
    Mistake(
        "received", _received,
        "You are one chunk off: in step 0 worker r sends chunk r, not chunk r + 1.",
    ),
    Mistake(
        "from the start", _from_the_start,
        "chunks are the workers' chunks just before this step: make this one step, not those before it.",
    ),
    Mistake(
        "always own", _always_own,
        "Only step 0 sends chunk r. After it, a worker sends the chunk that came in the step before.",
    ),
    Mistake(
        "same chunk", _always_first,
        "In one step every worker sends another chunk: in step 0 worker r sends chunk r.",
    ),
    Mistake("moved", _moved, "The sender keeps its chunk: it sends a copy."),
    Mistake("all chunks", _all_chunks, "Each worker sends one chunk a step, and only that one is added to."),
    Mistake("reduced", _reduced, "This is the sum that the whole all-reduce ends with: only one step is asked for."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, lengths: list[int], step: int) -> TestCase:
    size = len(lengths)
    chunks = [[draw.integers(1, 50, length).tolist() for length in lengths] for _ in range(size)]
    return TestCase(group, [{"chunks": chunks, "step": step}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    last = int(draw.integers(2, 4))
    return [
        _case(draw, "first step", [2] * 3, 0),
        _case(draw, "first step", [1] * 4, 0),
        _case(draw, "later steps", [2] * 3, 1),
        _case(draw, "later steps", [1] * 4, 1),
        _case(draw, "later steps", [1] * 5, last),
        _case(draw, "two workers, or chunks of unequal length", [2, 1], 0),
        _case(draw, "two workers, or chunks of unequal length", [2, 2, 1], 1),
    ]


EXERCISE = Compared(
    id="ring_step",
    title="One step of ring all-reduce",
    signature="ring_step(chunks: list[list[list[float]]], step: int) -> list[list[list[float]]]",
    statement="""\
The rules are those of the section "A ring". There are K workers, at least 2. Each cuts its vector into K chunks.
`chunks[r][c]` is chunk c of worker r, a list of numbers. Chunks with the same c are equally long on all workers. Chunks
with another c may have another length.

`chunks` is what the workers hold just before step `step` of the first half, which has the steps 0 to K - 2. Return what
they hold after this one step, in the same form. The neighbour of worker r is worker (r + 1) mod K. A sender keeps what
it sent.

Sergeev and Del Balso 2018 (arXiv:1802.05799), section 3; Patarasuk and Yuan 2009 (JPDC 69).""",
    example=([[[1], [2]], [[10], [20]]], 0),
    groups={"first step": 1, "later steps": 2, "two workers, or chunks of unequal length": 1},
    draw=_draw,
    reference=ring_step,
    mistakes=MISTAKES,
)
