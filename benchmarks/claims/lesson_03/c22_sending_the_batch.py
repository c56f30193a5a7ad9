"""C22: is it worth sending each worker only its part of the batch?

The workers are real processes. Worker 0 reads the images of a global batch. It sends each of the others either the
whole batch, from which the worker takes its part, or that part alone. Both the program and the kernel count the bytes
received.
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

IMAGE = 3 * 32 * 32 + 8  # bytes of an image: its pixels, and its label as int64
CLOSE = 0.01  # relative difference: counted bytes agree with a formula nearly exactly, or not at all

Cut = Callable[[Tensor, int, int], Tensor]  # (tensor with one row per image, rank, size) -> the rows sent to a worker


def whole(batch: Tensor, rank: int, size: int) -> Tensor:
    """Send the worker the whole batch."""
    return batch


CUTS: dict[str, Cut] = {"whole batch": whole, "shard": shard}


def feed(batch_size: int, updates: int, images: int, seed: int) -> dict[str, list[dict | None]]:
    """Measure each way on each process: bytes and seconds, one line per number of workers."""
    split = data(images) if dist.get_rank() == 0 else None
    return {way: each_size(partial(_fed, cut, split, batch_size, updates, seed)) for way, cut in CUTS.items()}


def _fed(cut: Cut, split: Split | None, batch_size: int, updates: int, seed: int, group: dist.ProcessGroup) -> dict:
    """The bytes received per update, and the seconds of each update.

    `pixels` is the sum of all pixels. It shows whether two ways send a worker the same images.
    """
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
    """Read a global batch on worker 0 and send it to the others. Returns worker 0's own images."""
    batch, size = split.batch(indices), group.size()
    works = [wire.send(cut(part, rank, size).contiguous(), rank) for rank in range(1, size) for part in batch]
    for work in works:
        work.wait()
    return shard(batch[0], 0, size)


def _take(wire: Wire, cut: Cut, batch_size: int, group: dist.ProcessGroup) -> Tensor:
    """Receive a batch on another worker. Returns the worker's own images."""
    rank, size = group.rank(), group.size()
    count = len(cut(torch.empty(batch_size * size), rank, size))
    images = wire.receive(torch.empty(count, 3, 32, 32, dtype=torch.uint8), 0)
    wire.receive(torch.empty(count, dtype=torch.int64), 0)
    return images if count == batch_size else shard(images, rank, size)


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure both ways in one launch. They always run on the CPU, whatever the setting `device` says."""
    options = {name: settings[name] for name in ("batch_size", "updates", "images")}
    workers = on_peers(f"{__name__}:feed", settings["workers"], seed=seed, **options)
    need, found = settings["batch_size"] * IMAGE, sizes(settings["workers"])
    return {way: {"sizes": found, "need": need} | _values([mine[way] for mine in workers], found) for way in CUTS}


def _values(workers: list[list], found: list[int]) -> Values:
    """The bytes per update that each worker except worker 0 receives, for 2, 4, ... workers.

    `seconds` holds worker 0's median seconds per update.
    """
    fed = [[mine[place] for mine in workers[1:size]] for place, size in enumerate(found)]
    counts = {name: [[line[name] for line in lines] for lines in fed] for name in ("received", "kernel_received")}
    seconds = [float(np.median(line["seconds"])) for line in workers[0]]
    return counts | {"seconds": seconds, "pixels": [[line["pixels"] for line in lines] for lines in fed]}


def times(run: Values) -> list[float]:
    """The bytes of the worker that receives most, divided by the bytes that it needs, for each number of workers."""
    return [max(received) / run["need"] for received in run["received"]]


def judge(runs: Runs) -> Verdict:
    """The claim holds if the whole batch is K times the bytes needed, and the shard is exactly the bytes needed.

    Raises ValueError if both ways did not send the workers the same images.
    """
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
    """A text with the ratio of both ways' bytes that the kernel counts; empty if the kernel does not count them."""
    counts = [[run["kernel_received"][-1][0] for run in runs[variant]] for variant in CUTS]
    if None in counts[0] + counts[1]:
        return ""
    return f" ({np.mean(counts[0]) / np.mean(counts[1]):.2f} times by the kernel's count)"


def picture(runs: Runs) -> Picture:
    """The picture shows the bytes received and the time, both against the number of workers."""
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
    lesson="13_lab_of_lesson_03",
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
