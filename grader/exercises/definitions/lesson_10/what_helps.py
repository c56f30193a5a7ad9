"""This exercise asks which technique of communication to try first, by the times of computing and of the exchange."""

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase

PLAIN, EARLIER, LARGER = "the plain way", "begin earlier", "larger batch"
BYTES, MESSAGES = "fewer bytes", "fewer messages"
LITTLE = 0.1  # an exchange is short if it takes at most this share of the time of computing


class Update:
    """These are the arguments of a call."""

    def __init__(self, computing: float, latency: float, sending: float, may_grow: bool):
        self.computing, self.latency, self.sending, self.may_grow = computing, latency, sending, may_grow

    @property
    def exchange(self) -> float:
        """Return the seconds of the exchange."""
        return self.latency + self.sending


def _slow(update: Update) -> str:
    """Return what helps if the exchange takes longer than computing."""
    if update.may_grow:
        return LARGER
    return MESSAGES if update.latency > update.sending else BYTES


def _rule(update: Update, exchange: float) -> str:
    if exchange <= LITTLE * update.computing:
        return PLAIN
    return EARLIER if exchange <= update.computing else _slow(update)


def what_helps(computing: float, latency: float, sending: float, may_grow: bool) -> str:
    """Return what to try first."""
    update = Update(computing, latency, sending, may_grow)
    return _rule(update, update.exchange)


MISTAKES = Mistakes(Update)


@MISTAKES.add("The exchange is latency and sending together.")
def _without_latency(update: Update) -> str:
    return _rule(update, update.sending)


@MISTAKES.add("If the exchange is short beside computing, leave everything as it is.")
def _never_plain(update: Update) -> str:
    return EARLIER if update.exchange <= update.computing else _slow(update)


@MISTAKES.add("An exchange that is longer than computing cannot hide behind it.")
def _always_earlier(update: Update) -> str:
    return PLAIN if update.exchange <= LITTLE * update.computing else EARLIER


@MISTAKES.add("An exchange that takes no longer than computing can hide behind it: begin earlier.")
def _never_earlier(update: Update) -> str:
    return PLAIN if update.exchange <= LITTLE * update.computing else _slow(update)


@MISTAKES.add("The batch may not always grow. Look at may_grow first.")
def _always_larger(update: Update) -> str:
    return _rule(Update(update.computing, update.latency, update.sending, True), update.exchange)


@MISTAKES.add("If the batch may grow, a larger batch comes before fewer bytes and fewer messages.")
def _never_larger(update: Update) -> str:
    return _rule(Update(update.computing, update.latency, update.sending, False), update.exchange)


@MISTAKES.add("Fewer bytes do not help if the latency of the messages takes the time.")
def _always_bytes(update: Update) -> str:
    answer = _rule(update, update.exchange)
    return BYTES if answer == MESSAGES else answer


@MISTAKES.add("The two are exchanged: many messages cost latency, many bytes cost time of sending.")
def _exchanged(update: Update) -> str:
    return {BYTES: MESSAGES, MESSAGES: BYTES}.get(answer := _rule(update, update.exchange), answer)


SHORT, MIDDLE = "the exchange is short", "the exchange is at most as long as computing"
GROWS, FIXED = "a longer exchange, and the batch may grow", "a longer exchange, and the batch stays"


def _case(
    draw: np.random.Generator, group: str, ratios: tuple[float, float], latency: float, may_grow: bool
) -> TestCase:
    """Draw an exchange that takes so many times as long as computing. `latency` is its share of the exchange."""
    computing = int(draw.integers(20, 500)) / 1000
    exchange = computing * float(draw.uniform(*ratios))
    drawn = {"latency": round(latency * exchange, 6), "sending": round((1 - latency) * exchange, 6)}
    return TestCase(group, [{"computing": computing, **drawn, "may_grow": may_grow}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        _case(draw, SHORT, (0.02, 0.09), 0.5, False),
        _case(draw, SHORT, (0.02, 0.09), 0.1, True),
        _case(draw, MIDDLE, (0.15, 0.25), 0.6, True),  # without the latency it would be short
        _case(draw, MIDDLE, (0.6, 0.9), 0.3, False),
        _case(draw, GROWS, (1.2, 1.8), 0.5, True),  # without the latency it would be at most as long as computing
        _case(draw, GROWS, (3, 20), 0.2, True),
        _case(draw, FIXED, (3, 20), 0.2, False),
        _case(draw, FIXED, (6, 20), 0.8, False),
    ]


EXERCISE = Compared(
    id="what_helps",
    title="What helps on this link",
    signature="what_helps(computing: float, latency: float, sending: float, may_grow: bool) -> str",
    statement=f"""\
In an update, a worker computes for `computing` seconds. All messages of the exchange together have `latency` seconds of
latency, and their bytes take `sending` seconds. The two add up. `may_grow` says whether the global batch may become
larger. Return what you would try first:

- "{PLAIN}" if the exchange takes at most a tenth of the time of computing;
- "{EARLIER}" if it takes longer than that, and not longer than computing, so that it can hide;
- if it takes longer than computing, "{LARGER}" where the global batch may grow. Where it may not, look at the part of
  the exchange that takes longer, and return "{MESSAGES}" or "{BYTES}". If both parts take equally long, it is
  "{BYTES}".""",
    example=(0.1, 0.001, 0.8, False),
    groups={SHORT: 1, MIDDLE: 1, GROWS: 1, FIXED: 1},
    draw=_draw,
    reference=what_helps,
    mistakes=MISTAKES,
)
