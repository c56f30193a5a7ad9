"""This exercise asks what one worker of a ring sends and gets in each step of a whole all-reduce."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase

Plan = tuple[int, int, bool]


def ring_plan(rank: int, step: int, size: int) -> Plan:
    """Return the number of the chunk sent, the number of the chunk received, and whether the latter is added."""
    return (rank - step) % size, (rank - 1 - step) % size, step < size - 1


def _same(rank: int, step: int, size: int) -> Plan:
    return ring_plan(0, step, size)


def _own(rank: int, step: int, size: int) -> Plan:
    sent, _, add = ring_plan(rank, step, size)
    return sent, sent, add


def _from_the_right(rank: int, step: int, size: int) -> Plan:
    sent, _, add = ring_plan(rank, step, size)
    return sent, (rank + 1 - step) % size, add


def _wrong_sign(rank: int, step: int, size: int) -> Plan:
    _, _, add = ring_plan(rank, step, size)
    return (rank + step) % size, (rank - 1 + step) % size, add


def _always_added(rank: int, step: int, size: int) -> Plan:
    return *ring_plan(rank, step, size)[:2], True


def _late(rank: int, step: int, size: int) -> Plan:
    return *ring_plan(rank, step, size)[:2], step < size


def _restarted(rank: int, step: int, size: int) -> Plan:
    _, _, add = ring_plan(rank, step, size)
    return *ring_plan(rank, step % (size - 1), size)[:2], add


def _negative(rank: int, step: int, size: int) -> Plan:
    _, _, add = ring_plan(rank, step, size)
    return rank - step, rank - 1 - step, add


MISTAKES = (
    Mistake("same", _same, "Each worker sends another chunk: in step 0 worker `rank` sends chunk `rank`."),
    Mistake("own", _own, "What comes is not the chunk that you send: it is the one that worker rank - 1 sends."),
    Mistake(
        "from the right", _from_the_right,
        "The chunk that comes is the one that worker rank - 1 sends, not worker rank + 1.",
    ),
    Mistake("wrong sign", _wrong_sign, "What you send in a step is what came in the step before: one number lower."),
    Mistake("always added", _always_added, "In the second half complete sums come: they replace what is there."),
    Mistake("late", _late, "The first half has K - 1 steps, 0 to K - 2: step K - 1 replaces already."),
    Mistake(
        "restarted", _restarted,
        "The second half does not begin again with chunk `rank`: a worker passes on the chunk that it completed last.",
    ),
    Mistake("negative", _negative, "Chunks are numbered 0 to K - 1, round the ring: take the rest of division by K."),
)  # fmt: skip


def _case(group: str, rank: int, step: int, size: int) -> TestCase:
    return TestCase(group, [{"rank": rank, "step": step, "size": size}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    sizes = [3, 4, int(draw.integers(5, 13))]
    ranks = [int(draw.integers(1, most)) for most in (3, 4, sizes[2] - 2)]
    first = [(rank, step, size) for rank, size in zip(ranks, sizes, strict=True) for step in (0, 1, size - 2)]
    second = [(rank, step, size) for rank, size in zip(ranks, sizes, strict=True) for step in (size - 1, 2 * size - 3)]
    return [
        *(_case("first half", *one) for one in dict.fromkeys(first)),
        *(_case("second half", *one) for one in second),
        *(_case("two workers", rank, step, 2) for rank in (0, 1) for step in (0, 1)),
    ]


EXERCISE = Compared(
    id="ring_plan",
    title="A worker's part in a ring all-reduce",
    signature="ring_plan(rank: int, step: int, size: int) -> tuple[int, int, bool]",
    statement="""\
The rules are those of the section "A ring". Now one worker must work out its own part, in both halves. There are
K = `size` workers, at least 2. Steps 0 to K - 2 add. Steps K - 1 to 2K - 3 replace.

Return three things for worker `rank` in step `step`: the number of the chunk that it sends, the number of the chunk
that it gets, and whether it adds (True or False).

Patarasuk and Yuan 2009 (JPDC 69); Sergeev and Del Balso 2018 (arXiv:1802.05799), section 3.""",
    example=(1, 0, 4),
    groups={"first half": 2, "second half": 2, "two workers": 1},
    draw=_draw,
    reference=ring_plan,
    mistakes=MISTAKES,
    relative=1e-9,  # the answers count chunks, so they must be exact
)
