"""This exercise asks how many bytes each worker sends in one update, by a parameter server and by ring all-reduce."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase

SERVER, RING = "parameter server", "ring"


def traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    """Return the bytes by rank. `scheme` is SERVER or RING."""
    if scheme == SERVER:
        return [(workers - 1) * gradient_bytes] + [gradient_bytes] * (workers - 1)
    return [2 * (workers - 1) * gradient_bytes // workers] * workers


def _to_itself(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    if scheme == SERVER:
        return [workers * gradient_bytes] + [gradient_bytes] * (workers - 1)
    return [2 * gradient_bytes] * workers


def _received_too(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    return [2 * sent for sent in traffic(scheme, workers, gradient_bytes)]


def _one_way(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    right = traffic(scheme, workers, gradient_bytes)
    return right if scheme == RING else [0, *right[1:]]


def _broadcast_once(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    right = traffic(scheme, workers, gradient_bytes)
    return right if scheme == RING else [min(gradient_bytes, right[0]), *right[1:]]


def _one_phase(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    right = traffic(scheme, workers, gradient_bytes)
    return right if scheme == SERVER else [sent // 2 for sent in right]


def _whole(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    return (
        [2 * (workers - 1) * gradient_bytes] * workers if scheme == RING else traffic(scheme, workers, gradient_bytes)
    )


def _exchanged(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    return traffic({SERVER: RING, RING: SERVER}[scheme], workers, gradient_bytes)


def _total(scheme: str, workers: int, gradient_bytes: int) -> list[int]:
    return [sum(traffic(scheme, workers, gradient_bytes))] * workers


MISTAKES = (
    Mistake(
        "to itself", _to_itself,
        "A worker sends nothing to itself: count workers - 1, not workers.",
    ),
    Mistake("received too", _received_too, "You counted what is received as well: only what is sent is asked for."),
    Mistake("one way", _one_way, "The gradients are only the way there: worker 0 sends the result back to each."),
    Mistake(
        "broadcast once", _broadcast_once,
        "Worker 0 sends the result once for each other worker, all through its own link: that is its bottleneck.",
    ),
    Mistake(
        "one phase", _one_phase,
        "This is the ring's first half: the sums have to go round as well, in as many steps again.",
    ),
    Mistake(
        "whole gradient", _whole,
        "In a step of the ring a worker sends one chunk, gradient_bytes / workers bytes, not the whole gradient.",
    ),
    Mistake("exchanged", _exchanged, "The two schemes are exchanged: in the ring all workers send equally much."),
    Mistake("total", _total, "This is what all workers send together: give each worker's own bytes, by rank."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, scheme: str, workers: int) -> TestCase:
    gradient_bytes = 4 * workers * int(draw.integers(1000, 1_000_000))
    return TestCase(group, [{"scheme": scheme, "workers": workers, "gradient_bytes": gradient_bytes}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    workers = draw.choice(np.arange(3, 17), (2, 3), replace=False).tolist()
    return [
        *(_case(draw, "parameter server", SERVER, count) for count in workers[0]),
        *(_case(draw, "ring", RING, count) for count in workers[1]),
        *(_case(draw, "one worker", scheme, 1) for scheme in (SERVER, RING)),
    ]


EXERCISE = Compared(
    id="traffic",
    title="What each worker sends in an update",
    signature="traffic(scheme: str, workers: int, gradient_bytes: int) -> list[int]",
    statement="""\
Each of `workers` workers has a gradient of `gradient_bytes` bytes, a multiple of the number of workers.
Return how many bytes each worker sends to others in one update, as a list by rank.

`scheme` is "parameter server" or "ring".

"parameter server": Worker 0 is the server. It also computes a gradient of its own, like the others. Each of the others
sends it its whole gradient. Then worker 0 sends the result to each of them, one by one. The result has as many bytes as
a gradient.

"ring": The gradient is cut into as many equal chunks as there are workers, and summed by ring all-reduce. In each step
each worker sends one chunk to its neighbour. After workers - 1 steps the sum of each chunk is on one worker. After as
many more steps every sum is on all workers. Each worker then computes its new weights itself.

Sergeev and Del Balso 2018 (arXiv:1802.05799), section 3; Patarasuk and Yuan 2009 (JPDC 69).""",
    example=("ring", 4, 400),
    groups={"parameter server": 1, "ring": 2, "one worker": 1},
    draw=_draw,
    reference=traffic,
    mistakes=MISTAKES,
    relative=1e-9,  # the answers count bytes, so they must be exact
)
