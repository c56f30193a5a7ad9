"""Predicts the updates of a cluster from published constants alone: nothing is fitted.

An update takes the forward pass, and then the longer of two things: the backward pass, or the exchange of all gradients
in a ring, which begins with the backward pass. Without this overlap, it takes both passes and then the exchange.
Workers that differ make all others wait for the slowest.
"""

import math
from typing import NamedTuple

from benchmarks.cost_models.cost_model import FORWARD
from benchmarks.cost_models.ring_all_reduce import traffic

BYTES = 4  # of a 32-bit gradient


class Network(NamedTuple):
    """A network: its number of weights, and the images that one device trains on in a second, with their source."""

    name: str
    weights: float
    images_per_s: float
    source: str

    @property
    def size(self) -> float:
        """The bytes of its gradients."""
        return BYTES * self.weights


_HOROVOD = "Horovod's README of 2017-09-05 (commit d54e3a8), one Pascal GPU, batch 64"
NETWORKS = (
    Network("Inception V3", 23.8e6, 148.8, _HOROVOD),
    Network("ResNet-101", 44.5e6, 136.0, _HOROVOD),
    Network("VGG-16", 138.4e6, 149.6, _HOROVOD),
    Network("ResNet-50", 25.6e6, 348.62, "DLPerf 2020, PyTorch, one V100, batch 128, 32-bit numbers"),
)


def server_seconds(workers: int, size: float, rate: float, latency: float, servers: int = 1) -> float:
    """The seconds in which servers get `size` bytes from each worker, average them, and send the mean back.

    Each server holds an equal share of the weights. `rate` is a link's bytes per second, and `latency` the seconds of a
    message. The busiest link is a server's if it has more than one worker's bytes to carry.
    """
    return 2 * latency + 2 * max(1, workers / servers) * size / rate


def ring_seconds(workers: int, size: float, rate: float, latency: float) -> float:
    """The seconds of a ring all-reduce of `size` bytes, without any time for agreeing on it."""
    messages, sent = traffic(workers, size)
    return messages * latency + sent / rate


def slowest(workers: int, spread: float) -> float:
    """How many times as long as the mean the slowest of these workers computes, about.

    `spread` is the standard deviation of a worker's time, as a share of the mean. The largest of K independent normal
    draws is about sqrt(2 ln K) standard deviations above their mean.
    """
    return 1 + spread * math.sqrt(2 * math.log(workers))


def update_seconds(
    workers: int, compute: float, size: float, rate: float, latency: float, spread: float, overlaps: bool = True
) -> float:  # fmt: skip
    """The seconds of an update in which each worker computes for `compute` seconds on average.

    If the exchange does not overlap with the backward pass, it begins after it.
    """
    computing = compute * slowest(workers, spread)
    if workers == 1:
        return computing
    exchange = ring_seconds(workers, size, rate, latency)
    if not overlaps:
        return computing + exchange
    return FORWARD * computing + max((1 - FORWARD) * computing, exchange)
