"""C22: is it worth sending each worker its part of the batch only?

Worker 0 reads the images of a global batch and sends each of the other workers, real processes, either the whole batch,
from which it takes its part, or that part alone. The bytes that come in are counted, in the program and in the kernel.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import deviation, mean_std
from benchmarks.experiment.plots import panels
from benchmarks.instruments.byte_counter import Wire, kernel_received
from benchmarks.instruments.gloo_processes import data, on_peers
from benchmarks.methods.communication_patterns import each_size, sizes
from cifar.data import Split, shard, shuffle

IMAGE = 3 * 32 * 32 + 8  # bytes: pixels, and a label as int64
CLOSE = 0.01  # bytes are counted: they agree with a formula, or they do not

Cut = Callable[[Tensor, int, int], Tensor]  # what of a tensor, an image a row, a worker gets


def whole(batch: Tensor, rank: int, size: int) -> Tensor:
    """All of it."""
    return batch


CUTS: dict[str, Cut] = {"whole batch": whole, "shard": shard}


def feed(batch_size: int, updates: int, images: int, seed: int) -> dict[str, list[dict | None]]:
    """On each process: bytes and seconds of each way, by number of workers."""
    split = data(images) if dist.get_rank() == 0 else None
    return {way: each_size(partial(_fed, cut, split, batch_size, updates, seed)) for way, cut in CUTS.items()}


def _fed(cut: Cut, split: Split | None, batch_size: int, updates: int, seed: int, group: dist.ProcessGroup) -> dict:
    """Bytes in and seconds, an update; `pixels` tells whether two ways feed a worker the same images."""
    wire, before, seconds, pixels = Wire(), kernel_received(), [], 0
    for update in range(updates):
        dist.barrier(group)
        started = time.perf_counter()
        if split:
            images = _give(wire, cut, split, shuffle(len(split), seed, update)[: batch_size * group.size()], group)
        else:
            images = _take(wire, cut, batch_size, group)
        dist.barrier(group)
        seconds.append(time.perf_counter() - started)
        pixels += int(images.sum())
    after = kernel_received()
    kernel = None if before is None or after is None else (after - before) / updates
    received = wire.received / updates
    return {"received": received, "kernel_received": kernel, "seconds": seconds, "pixels": pixels}


def _give(wire: Wire, cut: Cut, split: Split, indices: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Worker 0 reads a global batch and sends it; its own images."""
    batch, size = split.batch(indices), group.size()
    works = [wire.send(cut(part, rank, size).contiguous(), rank) for rank in range(1, size) for part in batch]
    for work in works:
        work.wait()
    return shard(batch[0], 0, size)


def _take(wire: Wire, cut: Cut, batch_size: int, group: dist.ProcessGroup) -> Tensor:
    """What another worker receives; its own images of it."""
    rank, size = group.rank(), group.size()
    count = len(cut(torch.empty(batch_size * size), rank, size))
    images = wire.receive(torch.empty(count, 3, 32, 32, dtype=torch.uint8), 0)
    wire.receive(torch.empty(count, dtype=torch.int64), 0)
    return images if count == batch_size else shard(images, rank, size)


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Both ways in one launch. On the CPU whatever the device."""
    options = {name: settings[name] for name in ("batch_size", "updates", "images")}
    workers = on_peers(f"{__name__}:feed", settings["workers"], seed=seed, **options)
    need, found = settings["batch_size"] * IMAGE, sizes(settings["workers"])
    return {way: {"sizes": found, "need": need} | _values([mine[way] for mine in workers], found) for way in CUTS}


def _values(workers: list[list], found: list[int]) -> Values:
    """Bytes that each worker but 0 receives, by rank, and worker 0's seconds an update, for 2, 4, ... workers."""
    fed = [[mine[place] for mine in workers[1:size]] for place, size in enumerate(found)]
    counts = {name: [[line[name] for line in lines] for lines in fed] for name in ("received", "kernel_received")}
    seconds = [float(np.median(line["seconds"])) for line in workers[0]]
    return counts | {"seconds": seconds, "pixels": [[line["pixels"] for line in lines] for lines in fed]}


def times(run: Values) -> list[float]:
    """How many times the bytes that it needs the worker receives that receives most; by number of workers."""
    return [max(received) / run["need"] for received in run["received"]]


def judge(runs: Runs) -> Verdict:
    """Holds where the whole batch is K times the need, and the shard the need itself."""
    found, batch, part = runs["shard"][0]["sizes"], *(runs[variant][0] for variant in CUTS)
    if any(a["pixels"] != b["pixels"] for a, b in zip(runs["whole batch"], runs["shard"], strict=False)):
        raise ValueError("the two ways fed the workers different images")
    all, own = (np.mean([times(run) for run in runs[variant]], 0) for variant in CUTS)
    ms = {variant: mean_std([run["seconds"][-1] for run in runs[variant]], 1000, 1) for variant in CUTS}
    text = (
        f"a worker of {found[-1]} receives {batch['received'][-1][0] / 1e6:.2f} MB an update with the whole batch, "
        f"{part['received'][-1][0] / 1e6:.2f} MB with its shard: {all[-1] / own[-1]:.2f} times as much{_kernel(runs)}. "
        f"Feeding all workers takes {ms['whole batch']} ms against {ms['shard']} ms."
    )
    if np.allclose(all, found, rtol=CLOSE) and np.allclose(own, 1, rtol=CLOSE):
        return Verdict("holds", text)
    return Verdict("fails" if all[-1] <= own[-1] * (1 + CLOSE) else "depends", text)


def _kernel(runs: Runs) -> str:
    """The same ratio as the kernel counts it."""
    counts = [[run["kernel_received"][-1][0] for run in runs[variant]] for variant in CUTS]
    if None in counts[0] + counts[1]:
        return ""
    return f" ({np.mean(counts[0]) / np.mean(counts[1]):.2f} times by the kernel's count)"


def picture(runs: Runs) -> Picture:
    """Bytes in and time, both against the number of workers."""
    workers = "workers K"
    figure, (left, right) = panels((workers, "a worker receives (MB an update)"), (workers, "time to feed all (ms)"))
    for variant, all in runs.items():
        found = all[0]["sizes"]
        left.plot(found, [max(received) / 1e6 for received in all[0]["received"]], label=variant)
        seconds = 1000 * np.array([run["seconds"] for run in all])
        right.errorbar(found, seconds.mean(0), deviation(seconds), capsize=3, label=variant)
    need = runs["shard"][0]["need"] / 1e6
    left.plot(found, [need * size for size in found], ":", marker="", color="black", label="K times the need")
    for ax in (left, right):
        ax.set(xticks=found, ylim=(0, None))
        ax.legend()
    most = max(times(runs["whole batch"][0]))
    return Picture(
        figure,
        f"Two line plots against the number of workers. Left: with the whole batch a worker's bytes rise in step, "
        f"to {most:.1f} times the need; with its shard they stay level. Right: time to feed all workers.",
        f"With {found[-1]} workers each receives {most:.2f} times what it needs ({need:.2f} MB) if the whole batch is "
        f"sent to all.",
    )


CLAIM = Claim(
    id="C22",
    statement="Do not send every worker the whole batch: it is K times what a worker needs.",
    source="S3",
    lesson="03_data_parallelism_by_hand",
    variants=tuple(CUTS),
    seeds=5,
    settings={"workers": 8, "batch_size": 128, "updates": 50, "images": 20_000},
    quick={"workers": 4, "batch_size": 64, "updates": 20, "images": 4096},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="The bytes are always the same; the times of few updates vary.",
    timing_sensitive=True,
)
