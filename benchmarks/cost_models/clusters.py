"""Predicts how well a cluster of hosts with several devices each keeps its devices busy. Nothing is fitted.

The inputs are published: how fast one device trains alone, how many weights the network has, and how fast the links
are. An update begins with the forward pass. During the backward pass, the gradients become ready in buckets, and each
bucket is exchanged when the bucket before it has been (`benchmarks.cost_models.cost_model.exchanges`). All workers wait
for the slowest one.
"""

import math
from typing import Literal, NamedTuple

from benchmarks.cost_models.cluster_model import BYTES, slowest
from benchmarks.cost_models.cost_model import FORWARD, exchanges
from benchmarks.cost_models.ring_all_reduce import traffic

SPREAD = 0.02  # standard deviation of a worker's time, as a share of the mean; see `benchmarks.cost_models.published`


class Cluster(NamedTuple):
    """Hosts with equally many devices. Rates are bytes per second in one direction, and latencies are seconds.

    `inner` is between two devices of a host, and `outer` between two hosts. In a `ring`, all devices of all hosts form
    one ring. In a `tree`, the devices of a host first add up their gradients, and then the hosts exchange in pairs, the
    distance doubling each time (Goyal and others 2017, section 4.1).
    """

    hosts: int
    devices: int
    inner_rate: float
    inner_latency: float
    outer_rate: float
    outer_latency: float
    exchange: Literal["ring", "tree"] = "ring"

    @property
    def workers(self) -> int:
        """One for each device."""
        return self.hosts * self.devices


class Training(NamedTuple):
    """What is trained, and by what: the seconds of an update on one device alone, weights, and the library's buckets.

    `bucket` is the bytes that are exchanged together. `start` is the seconds that the exchange of a bucket waits before
    it begins. Without `overlaps`, the exchange begins when the backward pass has ended.
    """

    alone: float
    weights: float
    bucket: float
    start: float = 0.0
    overlaps: bool = True


def exchange_seconds(cluster: Cluster, size: float) -> float:
    """The seconds of an all-reduce of `size` bytes."""
    if cluster.exchange == "tree":
        messages, sent = traffic(cluster.devices, size)
        inside = messages * cluster.inner_latency + sent / cluster.inner_rate
        _, between = traffic(cluster.hosts, size)
        steps = 2 * math.ceil(math.log2(cluster.hosts))
        return inside + steps * cluster.outer_latency + between / cluster.outer_rate
    messages, sent = traffic(cluster.workers, size)
    # A gradient goes round the ring twice, and each round it crosses from host to host once for each host.
    outer, _ = traffic(cluster.hosts, size)
    rate = cluster.inner_rate if cluster.hosts == 1 else min(cluster.inner_rate, cluster.outer_rate)
    return (messages - outer) * cluster.inner_latency + outer * cluster.outer_latency + sent / rate


def update_seconds(cluster: Cluster, training: Training, spread: float = SPREAD) -> float:
    """The seconds of an update of all workers together."""
    computing = training.alone * slowest(cluster.workers, spread)
    if cluster.workers == 1:
        return computing
    size = BYTES * training.weights
    if not training.overlaps:
        return computing + training.start + exchange_seconds(cluster, size)
    buckets = math.ceil(size / training.bucket)
    forward, one = FORWARD * computing, exchange_seconds(cluster, size / buckets)
    ends = exchanges(forward, computing - forward, buckets * one, training.start, buckets)
    return max(computing, ends[-1][1])


def efficiency(cluster: Cluster, training: Training, reference: Cluster | None = None) -> float:
    """The share of their time in which the workers train, if those of the reference always do.

    Without a reference, it is one device alone.
    """
    base = update_seconds(reference, training) if reference else training.alone
    return base / update_seconds(cluster, training)
