"""A model of the seconds of an update, for any number of workers and hosts, rate of the links, and batch.

Two parts add up. Computing takes `fixed + each * batch`, with constants for each number of workers, because workers on
one machine share its cores. An exchange of n bytes among K workers in a ring takes

    2 (K - 1) message + 2 n (K - 1) / K (byte + links / rate)

`message` is the time of a message without content, and `byte` the processor's time for a byte. The last term is the
time on a link of `rate` bytes per second. It is left out if all workers are on one host. `links` is a little more than
1, because each packet has a header. In a ring whose workers are in the order of the hosts, each link carries the same
bytes in each direction, however many workers a host has.

The first two terms are the alpha-beta model (Thakur and others 2005, "Optimization of Collective Communication
Operations in MPICH", section 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.cost_models.ring_all_reduce import fit_constants, traffic

FORWARD = 1 / 3  # of the computing; a backward pass multiplies and adds twice as often as a forward pass
POWER_SGD_EXCHANGES = 3  # of the tensors that are sent whole, and of the two matrices of all others


@dataclass(frozen=True)
class Setting:
    """What is to be predicted: workers, hosts, the rate of each host's link in bits per second, images per worker."""

    workers: int
    hosts: int
    rate: float
    batch: int


@dataclass(frozen=True)
class CostModel:
    """The constants, all in seconds: `computing` has (fixed, each image) by the number of workers.

    `own` has the seconds of a way's own work, by the way and the number of workers. A way that is not there has none.
    """

    computing: dict[int, tuple[float, float]]
    message: float
    byte: float
    links: float
    own: dict[tuple[str, int], float] = field(default_factory=dict)

    def compute(self, workers: int, batch: float) -> float:
        """The seconds in which all workers compute the gradients of `batch` images each."""
        fixed, each = self.computing[workers]
        return fixed + each * batch

    def exchange(self, setting: Setting, size: float, times: int = 1) -> float:
        """The seconds in which `size` bytes of each worker are averaged, in `times` exchanges one after the other."""
        messages, sent = traffic(setting.workers, size)
        return self._seconds(setting, times * messages, sent)

    def gather(self, setting: Setting, size: float) -> float:
        """The seconds in which each worker gets `size` bytes from each of the others, round a ring."""
        return self._seconds(setting, setting.workers - 1, (setting.workers - 1) * size)

    def _seconds(self, setting: Setting, messages: int, sent: float) -> float:
        return float(np.dot((self.message, self.byte, self.links), _terms(setting, messages, sent)))

    def update(self, way: str, setting: Setting, size: float, passes: int = 1) -> float:
        """The seconds in which each worker trains on `passes` batches, in a way of `exchange_ways`.

        `size` is the bytes that a worker hands over at each exchange. Raises KeyError for a way that the model does not
        know.
        """
        one = self.compute(setting.workers, setting.batch)
        whole = passes * one + self.exchange(setting, size)
        overlapped = FORWARD * one + max((1 - FORWARD) * one, self.exchange(setting, size))
        found = {
            "alone": passes * one,
            "large": self.compute(setting.workers, passes * setting.batch) + self.exchange(setting, size),
            "topk": one + self.gather(setting, size),
            "powersgd": one + self.exchange(setting, size, POWER_SGD_EXCHANGES),
            **dict.fromkeys(("parts", "ddp"), overlapped),
            **dict.fromkeys(("group", "fp16", "accumulate", "local"), whole),
        }
        return found[way] + self.own.get((way, setting.workers), 0.0)


def _terms(setting: Setting, messages: int, sent: float) -> tuple[float, float, float]:
    """The factors of `message`, `byte` and `links` in the seconds of an exchange."""
    return messages, sent, (8 * sent / setting.rate if setting.hosts > 1 else 0.0)


def exchanges(forward: float, backward: float, whole: float, start: float, buckets: int) -> list[tuple[float, float]]:
    """Return the begin and the end of each exchange of an update, in the unit of the arguments.

    The gradients are ready one bucket after the other during the backward pass, and all buckets are equally large. An
    exchange begins when its bucket is ready and the exchange before it has ended. It takes `start`, and its share of
    `whole`, which is the time of all bytes.
    """
    found, free = [], 0.0
    for number in range(1, buckets + 1):
        begin = max(free, forward + backward * number / buckets)
        free = begin + start + whole / buckets
        found.append((begin, free))
    return found


def fit(measured: Iterable[tuple[Setting, float, float]], size: float) -> CostModel:
    """Fit the model to settings, each with the seconds of an update without exchange, and of one with all gradients.

    There are two batches or more for each number of workers. `size` is the bytes of the gradients. The constants
    minimise the squares of the relative errors, and none is negative. What an exchange takes is the difference of the
    two times of a setting. So a machine that is slower for a while does not look like a slow exchange.
    """
    found: dict[int, list[tuple[int, float]]] = {}
    rows, exchanges, updates = [], [], []
    for setting, alone, seconds in measured:
        found.setdefault(setting.workers, []).append((setting.batch, alone))
        rows.append(_terms(setting, *traffic(setting.workers, size)))
        exchanges.append(seconds - alone)
        updates.append(seconds)
    computing = {workers: fit_computing(*zip(*pairs, strict=True)) for workers, pairs in found.items()}
    return CostModel(computing, *fit_constants(rows, exchanges, updates))


def fit_computing(batches: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """The seconds of an update whatever its batch, and those of each image, from updates with several batches."""
    return fit_constants([(1.0, batch) for batch in batches], seconds)
