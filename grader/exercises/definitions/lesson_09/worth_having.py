"""This exercise asks how many workers of a ring compute for at least half of their time."""

from collections.abc import Callable

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase

MOST = 4096  # workers; without a limit, some cases would have no largest number


class Update:
    """These are the arguments of a call. All times are in seconds."""

    def __init__(self, computing: float, latency: float, byte_time: float, agreeing: float, gradient_bytes: int):
        self.computing, self.latency, self.byte_time = computing, latency, byte_time
        self.agreeing, self.gradient_bytes = agreeing, gradient_bytes

    def exchange(self, workers: int) -> float:
        """Return the seconds of an exchange among so many workers. One worker exchanges nothing."""
        if workers == 1:
            return 0.0
        steps = 2 * (workers - 1)
        return self.agreeing + steps * (self.latency + self.gradient_bytes / workers * self.byte_time)


def _largest(computing: float, exchange: Callable[[int], float]) -> int:
    """Return the largest number of workers whose exchange takes at most as long as computing. It grows with them."""
    workers = 1
    while workers < MOST and exchange(workers + 1) <= computing:
        workers += 1
    return workers


def worth_having(computing: float, latency: float, byte_time: float, agreeing: float, gradient_bytes: int) -> int:
    """Return the largest number of workers that are worth having."""
    return _largest(computing, Update(computing, latency, byte_time, agreeing, gradient_bytes).exchange)


MISTAKES = Mistakes(Update)


@MISTAKES.add("The ring has two halves, so each worker makes 2 (K - 1) steps, and not K - 1.")
def _one_half(update: Update) -> int:
    agreeing = update.agreeing
    return _largest(update.computing, lambda workers: agreeing + (update.exchange(workers) - agreeing) / 2)


@MISTAKES.add("In each step a worker sends one chunk. It has gradient_bytes / K bytes, and not all of them.")
def _whole_gradient(update: Update) -> int:
    each = update.latency + update.gradient_bytes * update.byte_time
    return _largest(update.computing, lambda workers: update.agreeing + 2 * (workers - 1) * each)


@MISTAKES.add("The time of agreeing is missing. It comes once for each exchange.")
def _never_agreeing(update: Update) -> int:
    return _largest(update.computing, lambda workers: update.exchange(workers) - update.agreeing)


@MISTAKES.add("The time of agreeing comes once for each exchange, and not once for each message.")
def _agreeing_at_each_message(update: Update) -> int:
    agreeing = update.agreeing
    return _largest(update.computing, lambda workers: update.exchange(workers) + (2 * workers - 3) * agreeing)


@MISTAKES.add("A worker that computes for half of its time waits as long as it computes, and not half as long.")
def _half_as_long(update: Update) -> int:
    return _largest(update.computing / 2, update.exchange)


@MISTAKES.add("This is the first number that is not worth having. The largest one that is comes just before it.")
def _one_too_many(update: Update) -> int:
    return min(MOST, _largest(update.computing, update.exchange) + 1)


@MISTAKES.add("The bytes are missing. Each step also takes the time of its chunk's bytes.")
def _messages_alone(update: Update) -> int:
    return _largest(update.computing, lambda workers: update.agreeing + 2 * (workers - 1) * update.latency)


def _is_clear(update: Update) -> bool:
    """Return whether the answer does not depend on rounding: no exchange takes nearly as long as computing."""
    workers = _largest(update.computing, update.exchange)
    times = [update.exchange(number) for number in (workers, workers + 1)]
    return all(abs(time / update.computing - 1) > 5e-5 for time in times)


def _case(draw: np.random.Generator, group: str, agreeing: bool, length: int, most: int) -> TestCase:
    """Draw a call whose answer is about `most`. The bytes cost up to a quarter of `length` computing times."""
    while True:
        computing = int(draw.integers(50, 500)) / 1000
        drawn = {
            "computing": computing,
            "latency": round(computing / (2 * most) * float(draw.uniform(0.5, 1.0)), 7),
            "byte_time": int(draw.integers(2, 20)) / 1e9 if length else 0.0,
            "agreeing": round(computing * float(draw.uniform(0.05, 0.2)), 4) if agreeing else 0.0,
            "gradient_bytes": 0,
        }
        if length:
            share = float(draw.uniform(0.1, 0.25)) * length
            drawn["gradient_bytes"] = 4 * round(share * computing / drawn["byte_time"] / 4)
        if _is_clear(Update(**drawn)):
            return TestCase(group, [drawn])


ALONE, ALL_THREE, EDGE = "messages alone", "messages, bytes and agreeing", "one worker, or as many as there may be"


def _edges(draw: np.random.Generator) -> list[TestCase]:
    """Draw calls in which two workers are too many, and one in which even the most are worth having."""
    computing = int(draw.integers(50, 500)) / 1000
    too_slow = {"computing": computing, "latency": computing, "byte_time": 0.0, "agreeing": 0.0, "gradient_bytes": 0}
    too_large = {**too_slow, "latency": 0.0, "byte_time": 1e-8, "gradient_bytes": 4 * round(computing * 4e7)}
    fast = {**too_slow, "latency": computing / 1e6, "byte_time": 1e-10, "gradient_bytes": 4_000_000}
    return [TestCase(EDGE, [call]) for call in (too_slow, too_large, fast)]


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        *(_case(draw, ALONE, agreeing=False, length=0, most=most) for most in (8, 50, 300)),
        *(_case(draw, ALL_THREE, agreeing=True, length=1, most=most) for most in (10, 40, 200, 900)),
        *_edges(draw),
    ]


EXERCISE = Compared(
    id="worth_having",
    title="How many workers are worth having",
    signature=(
        "worth_having(computing: float, latency: float, byte_time: float, agreeing: float, gradient_bytes: int) -> int"
    ),
    statement=f"""\
A worker computes its gradient in `computing` seconds. Then K workers exchange their gradients in a ring. The
section's formula says how long this takes, and the names are those of the formula. All times are in seconds, and
`byte_time` is the time of one byte. The workers do not compute during the exchange. One worker alone exchanges nothing.

Workers are worth having as long as each of them computes for at least half of its time. Return the largest number of
workers that are worth having. It is at least 1. Return {MOST} if it would be more.""",
    example=(0.105, 0.001, 0.0, 0.0, 0),
    groups={ALONE: 1, ALL_THREE: 2, EDGE: 1},
    draw=_draw,
    reference=worth_having,
    mistakes=MISTAKES,
    relative=1e-9,  # the answers count workers, so they must be exact
)
