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
from dataclasses import dataclass

import numpy as np

from benchmarks.methods.ring_all_reduce import fit_constants, traffic

FORWARD = 1 / 3  # of the computing; a backward pass multiplies and adds twice as often as a forward pass


@dataclass(frozen=True)
class Setting:
    """What is to be predicted: workers, hosts, the rate of each host's link in bits per second, images per worker."""

    workers: int
    hosts: int
    rate: float
    batch: int


@dataclass(frozen=True)
class CostModel:
    """The constants, all in seconds: `computing` has (fixed, each image) by the number of workers."""

    computing: dict[int, tuple[float, float]]
    message: float
    byte: float
    links: float

    def compute(self, workers: int, batch: float) -> float:
        """The seconds in which all workers compute the gradients of `batch` images each."""
        fixed, each = self.computing[workers]
        return fixed + each * batch

    def exchange(self, setting: Setting, size: float) -> float:
        """The seconds of an exchange of `size` bytes."""
        return float(np.dot((self.message, self.byte, self.links), _terms(setting, size)))

    def update(self, way: str, setting: Setting, size: float, passes: int = 1) -> float:
        """The seconds in which each worker trains on `passes` batches, in a way of `exchange_ways`.

        `size` is the bytes of the gradients. Raises KeyError for a way that the model does not know.
        """
        one = self.compute(setting.workers, setting.batch)
        exchanged = self.exchange(setting, size)
        return {
            "alone": lambda: passes * one,
            "group": lambda: passes * one + exchanged,
            "parts": lambda: FORWARD * one + max((1 - FORWARD) * one, exchanged),
            "fp16": lambda: passes * one + self.exchange(setting, size / 2),
            "large": lambda: self.compute(setting.workers, passes * setting.batch) + exchanged,
            "accumulate": lambda: passes * one + exchanged,
            "local": lambda: passes * one + exchanged,
        }[way]()


def _terms(setting: Setting, size: float) -> tuple[float, float, float]:
    """The factors of `message`, `byte` and `links` in the seconds of an exchange."""
    messages, sent = traffic(setting.workers, size)
    return messages, sent, (8 * sent / setting.rate if setting.hosts > 1 else 0.0)


def fit(
    computed: Iterable[tuple[Setting, float]], exchanged: Iterable[tuple[Setting, float]], size: float
) -> CostModel:
    """Fit the model.

    `computed` has the seconds of updates without exchange, with two batches or more for each number of workers.
    `exchanged` has the seconds of updates with all gradients in one group. `size` is the bytes of the gradients. The
    constants minimise the squares of the relative errors, and none is negative.
    """
    found: dict[int, list[tuple[int, float]]] = {}
    for setting, seconds in computed:
        found.setdefault(setting.workers, []).append((setting.batch, seconds))
    computing = {workers: fit_computing(*zip(*rows, strict=True)) for workers, rows in found.items()}
    rows, exchanges, updates = [], [], []
    for setting, seconds in exchanged:
        fixed, each = computing[setting.workers]
        rows.append(_terms(setting, size))
        exchanges.append(seconds - fixed - each * setting.batch)
        updates.append(seconds)
    return CostModel(computing, *fit_constants(rows, exchanges, updates))


def fit_computing(batches: Sequence[int], seconds: Sequence[float]) -> tuple[float, float]:
    """The seconds of an update whatever its batch, and those of each image, from updates with several batches."""
    return fit_constants([(1.0, batch) for batch in batches], seconds)
