"""The numbers of the explorables that Python computes."""

from collections.abc import Callable

import numpy as np

from benchmarks.cost_models.cluster_model import NETWORKS
from cifar.data import shard, shuffle

IMAGES, WORKERS, EPOCHS, SEED = 18, 4, 3, 0  # of the explorable about shards
DRAWS, EACH = 6, 32  # of the explorable about batch norm: draws, and the most images that a worker has


def of(name: str) -> dict:
    """Return the numbers of an explorable. Most compute theirs themselves, and have none."""
    return {"shards": _shards, "statistics": _statistics, "efficiency": _efficiency}.get(name, dict)()


WAYS: dict[str, Callable[[int, int, int], list[int]]] = {
    "right": lambda rank, size, epoch: _shard(rank, size, SEED, epoch),
    "no epoch": lambda rank, size, epoch: _shard(rank, size, SEED, 0),
    "own seed": lambda rank, size, epoch: _shard(rank, size, SEED + rank, epoch),
    "rank 0": lambda rank, size, epoch: _shard(0, size, SEED, epoch),
    "padded": lambda rank, size, epoch: _padded(rank, size, epoch),
}


def _shard(rank: int, size: int, seed: int, epoch: int) -> list[int]:
    """The images of a worker in an epoch, by the functions that the course's programs use."""
    return shard(shuffle(IMAGES, seed, epoch), rank, size).tolist()


def _padded(rank: int, size: int, epoch: int) -> list[int]:
    """The images of a worker if the order is filled up from its beginning, until all shards are equally long."""
    order = shuffle(IMAGES, SEED, epoch).tolist()
    order += order[: -len(order) % size]
    return order[rank::size]


def _shards() -> dict:
    shards = {
        way: [
            [[of_worker(rank, size, epoch) for rank in range(size)] for epoch in range(EPOCHS)]
            for size in range(1, WORKERS + 1)
        ]
        for way, of_worker in WAYS.items()
    }
    return {"images": IMAGES, "shards": shards}


def _statistics() -> dict:
    draw = np.random.default_rng(SEED)
    return {"draws": np.clip(draw.normal(size=(DRAWS, WORKERS * EACH)), -3.4, 3.4).round(2).tolist()}


def _efficiency() -> dict:
    return {
        "networks": {
            network.name: {"images_per_s": network.images_per_s, "bytes": network.size} for network in NETWORKS
        }
    }
