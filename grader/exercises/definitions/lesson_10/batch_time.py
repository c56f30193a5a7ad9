"""This exercise asks how long a batch takes, by the way in which the gradients are exchanged."""

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase

PLAIN, EARLIER, SHORTER, RARER = "plain", "earlier", "float16", "4 batches"


class Batch:
    """These are the arguments of a call."""

    def __init__(self, forward: float, backward: float, latency: float, sending: float, way: str):
        self.forward, self.backward, self.latency, self.sending, self.way = forward, backward, latency, sending, way

    @property
    def computing(self) -> float:
        """Return the seconds of both passes."""
        return self.forward + self.backward

    @property
    def exchange(self) -> float:
        """Return the seconds of an exchange of all bytes."""
        return self.latency + self.sending

    @property
    def plain(self) -> float:
        """Return the seconds of a batch if the whole exchange follows the backward pass."""
        return self.computing + self.exchange


def _time(batch: Batch) -> float:
    """Return the seconds from one batch to the next."""
    if batch.way == EARLIER:
        return batch.forward + max(batch.backward, batch.exchange)
    if batch.way == SHORTER:
        return batch.computing + batch.latency + batch.sending / 2
    if batch.way == RARER:
        return batch.computing + batch.exchange / 4
    return batch.plain


def batch_time(forward: float, backward: float, latency: float, sending: float, way: str) -> float:
    """Return the seconds from one batch to the next."""
    return _time(Batch(forward, backward, latency, sending, way))


MISTAKES = Mistakes(Batch)


@MISTAKES.add("An exchange also takes the latency of its messages, besides the sending of the bytes.")
def _without_latency(batch: Batch) -> float:
    return _time(Batch(batch.forward, batch.backward, 0.0, batch.sending, batch.way))


@MISTAKES.add("float16 halves the bytes, and not the number of messages: the latency stays.")
def _half_of_all(batch: Batch) -> float:
    return batch.computing + batch.exchange / 2 if batch.way == SHORTER else _time(batch)


@MISTAKES.add("What begins early runs beside the backward pass: the longer of the two counts, and not their sum.")
def _never_beside(batch: Batch) -> float:
    return batch.plain if batch.way == EARLIER else _time(batch)


@MISTAKES.add("The exchange begins with the backward pass. It cannot hide behind the forward pass, which comes before.")
def _beside_all(batch: Batch) -> float:
    return max(batch.computing, batch.exchange) if batch.way == EARLIER else _time(batch)


@MISTAKES.add("An exchange that is longer than the backward pass does not disappear: the worker waits for the rest.")
def _hidden(batch: Batch) -> float:
    return batch.computing if batch.way == EARLIER else _time(batch)


@MISTAKES.add("With float16, half of the bytes are sent, so the sending takes half of the time.")
def _all_bytes(batch: Batch) -> float:
    return batch.plain if batch.way == SHORTER else _time(batch)


@MISTAKES.add("Four batches share one exchange, so each of them pays a quarter of it.")
def _an_exchange_each(batch: Batch) -> float:
    return batch.plain if batch.way == RARER else _time(batch)


@MISTAKES.add("The question is about one batch: four batches share one exchange, so each pays a quarter of it.")
def _four_together(batch: Batch) -> float:
    return 4 * batch.computing + batch.exchange if batch.way == RARER else _time(batch)


@MISTAKES.add("Only the exchange is shared by the four batches. Each of them is computed.")
def _all_by_four(batch: Batch) -> float:
    return (batch.computing + batch.exchange) / 4 if batch.way == RARER else _time(batch)


GROUPS = {PLAIN: 1, EARLIER: 1, SHORTER: 1, RARER: 1}


def _case(draw: np.random.Generator, way: str, ratio: tuple[float, float]) -> TestCase:
    """Draw an exchange that takes so many times as long as the backward pass."""
    forward, backward = (int(draw.integers(*ends)) / 1000 for ends in ((10, 100), (20, 200)))
    exchange, share = backward * draw.uniform(*ratio), draw.uniform(0.2, 0.6)
    times = {"latency": round(share * exchange, 5), "sending": round((1 - share) * exchange, 5)}
    return TestCase(way, [{"forward": forward, "backward": backward, **times, "way": way}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    """Draw a short and a long exchange for each way. The long one is longer than both passes together."""
    return [_case(draw, way, ratio) for way in GROUPS for ratio in ((0.3, 0.9), (7.0, 20.0))]


EXERCISE = Compared(
    id="batch_time",
    title="The time of a batch, by the way of the exchange",
    signature="batch_time(forward: float, backward: float, latency: float, sending: float, way: str) -> float",
    statement=f"""\
A worker's forward pass takes `forward` seconds, and its backward pass `backward` seconds. In an exchange, the messages
have `latency` seconds of latency, and then the bytes take `sending` seconds. Return the seconds from one batch to the
next, by the `way`:

- "{PLAIN}": the exchange begins when the backward pass has ended.
- "{EARLIER}": the exchange begins together with the backward pass, and runs beside it. The next batch waits for both.
- "{SHORTER}": as "{PLAIN}", but with half of the bytes in the same messages.
- "{RARER}": as "{PLAIN}", but there is one exchange for four batches. Return the mean over the four.""",
    example=(0.03, 0.06, 0.01, 0.09, EARLIER),
    groups=GROUPS,
    draw=_draw,
    reference=batch_time,
    mistakes=MISTAKES,
)
