"""The cost of a ring all-reduce, measured on real workers, and a model with three constants that are fitted to it.

An all-reduce of n bytes in a ring of K workers takes the sum of three times: the time of 2(K-1) messages, the time of
2n(K-1)/K bytes, and the wait until Horovod's background threads have agreed on the exchange. The wait depends neither
on K nor on n. The first two times are called the alpha-beta model.
"""

import time

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
    from scipy.optimize import nnls

    rows = [[1, 2 * (k - 1), 2 * (k - 1) / k * n] for k in values["workers"] for n in values["bytes"]]
    seconds = np.ravel(values["seconds"])
    constants, _ = nnls(np.array(rows) / seconds[:, None], np.ones(len(seconds)))
    return tuple(map(float, constants))


def ring(constants: tuple[float, float, float], workers: int, size: float) -> float:
    """The model's seconds for an all-reduce of `size` bytes among `workers` workers. One worker needs no time."""
    once, alpha, beta = constants
    return once + 2 * (workers - 1) * alpha + 2 * (workers - 1) / workers * size * beta if workers > 1 else 0.0
