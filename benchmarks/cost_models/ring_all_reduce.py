"""The cost of a ring all-reduce, measured on real workers, and a model with three constants that are fitted to it.

An all-reduce of n bytes in a ring of K workers takes the sum of three times: the time of 2(K-1) messages, the time of
2n(K-1)/K bytes, and the wait until Horovod's background threads have agreed on the exchange. The wait depends neither
on K nor on n. The first two times are called the alpha-beta model.
"""

import time
from collections.abc import Sequence

import numpy as np


def all_reduce_seconds(sizes: list[int], repeats: int) -> list[float]:
    """Runs on each worker. Returns the median seconds of an all-reduce of each size, which is in bytes.

    Each size is measured `repeats` times, after two all-reduces that do not count.
    """
    import horovod.torch as hvd
    import torch

    from benchmarks.instruments import horovod_ops

    medians = []
    for size in sizes:
        tensor, seconds = torch.ones(size // 4), []
        for _ in range(repeats + 2):
            horovod_ops.barrier()
            started = time.perf_counter()
            handle = hvd.allreduce_async(tensor, name=f"{size}")
            while not hvd.poll(handle):
                time.sleep(0.0001)
            hvd.synchronize(handle)
            seconds.append(time.perf_counter() - started)
        medians.append(float(np.median(seconds[2:])))
    return medians


def fit(values: dict) -> tuple[float, float, float]:
    """The model's three constants: seconds per all-reduce, per message (alpha) and per byte (beta).

    `values` holds the numbers of `workers`, the sizes in `bytes`, and `seconds`: a row of times for each number of
    workers. The constants minimise the squares of the relative errors, and none is negative.
    """
    rows = [[1, *traffic(workers, size)] for workers in values["workers"] for size in values["bytes"]]
    return fit_constants(rows, np.ravel(values["seconds"]))


def fit_constants(
    rows: Sequence[Sequence[float]], seconds: Sequence[float], scale: Sequence[float] | None = None
) -> tuple[float, ...]:
    """The constants, none negative, with which each row's sum of products comes near its seconds.

    They minimise the squares of the errors, each divided by its `scale`. By default, this is the row's own seconds.
    """
    from scipy.optimize import nnls

    unit = np.asarray(seconds if scale is None else scale)
    constants, _ = nnls(np.array(rows) / unit[:, None], np.asarray(seconds) / unit)
    return tuple(map(float, constants))


def traffic(workers: int, size: float) -> tuple[int, float]:
    """The messages that follow each other in a ring all-reduce of `size` bytes, and the bytes that a worker sends."""
    messages = 2 * (workers - 1)
    return messages, messages / workers * size


def ring(constants: tuple[float, float, float], workers: int, size: float) -> float:
    """The model's seconds for an all-reduce of `size` bytes among `workers` workers. One worker needs no time."""
    once, alpha, beta = constants
    messages, sent = traffic(workers, size)
    return once + messages * alpha + sent * beta if workers > 1 else 0.0
