"""Measures 1, 2, 4 and 8 workers: images/s with a fixed global and a fixed per-worker batch, memory, epochs needed.

A cost model predicts each speed. One worker on all cores computes b images in t0 + c b seconds. K workers share the
cores, so t0 grows by the factor K / cores where K is larger than the number of cores, and c b grows to K c b. A ring
all-reduce of n bytes among K workers takes 2 (K - 1) times a latency, 2 n (K - 1) / K times a byte's time, and a
constant time (C14). t0 and c come from one worker at two batch sizes. The other constants come from all-reduces of two
sizes, measured in the same runs.

All runs use Horovod's own cycle time. The course chooses a longer one for more workers than cores. A single tensor
waits for the cycle to end, but a group does not. The gradients are a group.
"""

import resource

import numpy as np
import torch

from benchmarks.cost_models.ring_all_reduce import all_reduce_seconds, fit, ring
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import BLUE, medians, panels
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.speed.tables import Table, told
from cifar.support.environment import cores

SIZES = (1, 2, 4, 8)  # numbers of workers
BATCHES = {"strong": 512, "weak": 128}  # images per update: of all workers together (strong), of each one (weak)
SMALL = 4096  # bytes of the small all-reduce: its time is mostly latency; the large one has the gradient's size
CYCLE = {"HOROVOD_CYCLE_TIME": "1"}  # milliseconds: Horovod's own value
BASE_RATE, WARMUP = 0.1, 0.25  # learning rate of one worker, and the warmup's share of the updates
TOLD = {"strong": "global batch 512", "weak": "128 a worker"}
CLOSE = 0.25  # a prediction with at most this relative error counts as good


def speed(batch_size: int, updates: int) -> dict:
    """Runs on a worker. Measures the seconds of the updates, the peak memory in bytes, and the seconds of all-reduces.

    `bytes` holds the sizes of the all-reduces.
    """
    import horovod.torch as hvd

    from benchmarks.speed import loop

    seconds = loop.horovod(True, 1, "resnet9", batch_size, updates)
    most = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # Linux counts in kibibytes
    sizes = [SMALL, loop.gradient_bytes("resnet9")]
    found = {"seconds": seconds, "memory": most, "bytes": sizes}
    return found | {"all_reduce": all_reduce_seconds(sizes, 10) if hvd.size() > 1 else []}


def epochs(batch_size: int, images: int, test_images: int, target: float, most: int, seed: int) -> dict:
    """Runs on a worker. Returns the number of epochs until the test accuracy reaches `target`, and the last accuracy.

    The number is None if `most` epochs do not suffice.
    """
    import horovod.torch as hvd
    from torch.optim import SGD
    from torch.optim.lr_scheduler import LambdaLR

    from benchmarks.instruments import horovod_ops
    from benchmarks.speed import loop
    from cifar.data import augment, batches, shard, shuffle, updates_per_epoch
    from cifar.schedule import warmup_factor
    from cifar.training import count_correct, running_statistics, train_epoch

    train, test = horovod_ops.data("cpu", images, test_images)
    net = loop.build("resnet9", seed)
    optimizer = hvd.DistributedOptimizer(
        SGD(net.parameters(), lr=BASE_RATE, momentum=0.9, nesterov=True, weight_decay=5e-4), groups=1,
        named_parameters=net.named_parameters(),
    )  # fmt: skip
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    warmup = int(WARMUP * most * updates_per_epoch(images, batch_size, hvd.size()))
    scheduler = LambdaLR(optimizer, lambda update: warmup_factor(update, warmup, hvd.size()))
    torch.manual_seed(seed * 100 + hvd.rank())
    accuracy = 0.0
    for epoch in range(most):
        mine = shard(shuffle(images, seed, epoch), hvd.rank(), hvd.size())
        train_epoch(net, optimizer, scheduler, batches(train, mine, batch_size, augment))
        for at, statistics in enumerate(running_statistics(net)):
            statistics.copy_(horovod_ops.mean(statistics, f"statistics.{at}"))
        correct = count_correct(net, test, torch.arange(hvd.rank(), test_images, hvd.size()))
        accuracy = horovod_ops.total(correct, "correct").item() / test_images
        if accuracy >= target:
            return {"epochs": epoch + 1, "accuracy": accuracy}
    return {"epochs": None, "accuracy": accuracy}


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure one way with one number of workers. A variant is named like `strong-4`."""
    way, workers = variant.split("-")
    workers = int(workers)
    if way == "epochs":
        options = {name: settings[name] for name in ("images", "test_images", "target", "most")}
        options["batch_size"] = BATCHES["weak"]
        return options | on_workers(f"{__name__}:epochs", workers, seed=seed, **options)[0]
    batch = BATCHES["strong"] // workers if way == "strong" else BATCHES["weak"]
    updates = max(2, settings["speed_images"] // (batch * workers))
    found = on_workers(f"{__name__}:speed", workers, CYCLE, batch_size=batch, updates=updates)
    slowest = max(one["seconds"] for one in found)
    return {
        "batch": batch, "update_seconds": slowest / updates, "images_per_s": workers * batch * updates / slowest,
        "memory": [one["memory"] for one in found], "bytes": found[0]["bytes"], "all_reduce": found[0]["all_reduce"],
        "cores": cores(),
    }  # fmt: skip


def values(runs: Runs, way: str, workers: int, name: str) -> np.ndarray:
    """The value called `name` of a way and number of workers, one per round."""
    return np.array([run[name] for run in runs[f"{way}-{workers}"]])


def predicted(runs: Runs, way: str, workers: int) -> float:
    """The images/s that the cost model predicts."""
    one = {way: (BATCHES[way], np.median(values(runs, way, 1, "update_seconds"))) for way in BATCHES}
    (large, slow), (small, fast) = one["strong"], one["weak"]
    each = max(0.0, (slow - fast) / (large - small))
    fixed = max(0.0, fast - each * small)
    batch, of_cores = runs[f"{way}-{workers}"][0]["batch"], runs["strong-1"][0]["cores"]
    # One worker has all cores for itself. K workers share them, so each needs K times as long for the same images.
    computing = fixed * max(1.0, workers / of_cores) + each * batch * workers
    return workers * batch / (computing + _exchange(runs, workers))


def _exchange(runs: Runs, workers: int) -> float:
    """The seconds that the model predicts for an all-reduce of the gradient."""
    teams = [size for size in SIZES if size > 1]
    sizes = runs["strong-2"][0]["bytes"]
    seconds = [
        np.median(np.concatenate([values(runs, way, size, "all_reduce") for way in BATCHES]), axis=0) for size in teams
    ]
    return ring(fit({"workers": teams, "bytes": sizes, "seconds": seconds}), workers, sizes[1])


def table(runs: Runs) -> Table:
    """The table has one row per way and number of workers: measured and predicted speed, memory, epochs needed."""
    rows = []
    for way, name in TOLD.items():
        for size in SIZES:
            speeds, memory = values(runs, way, size, "images_per_s"), _memory(runs, way, size)
            needed = _needed(runs, size) if way == "weak" else ""
            model = f"{predicted(runs, way, size):,.0f}" if size > 1 else "given"
            rows.append((name, str(size), told(speeds, 0), model, told(memory, 0), needed))
    heads = "batch", "workers", "images/s", "predicted", "MiB a worker", f"epochs to {_target(runs)}"
    return Table(heads, rows)


def _memory(runs: Runs, way: str, size: int) -> list[float]:
    """The peak memory in MiB of the worker that uses most, one value per round."""
    return [max(run["memory"]) / 2**20 for run in runs[f"{way}-{size}"]]


def _target(runs: Runs) -> str:
    """The target accuracy as text."""
    return f"{runs['epochs-1'][0]['target']:.0%} test accuracy"


def judge(runs: Runs) -> Verdict:
    """The claim holds if the model predicts all speeds with errors of at most CLOSE, and fails if it predicts none."""
    errors = {
        (way, size): predicted(runs, way, size) / np.median(values(runs, way, size, "images_per_s")) - 1
        for way in TOLD
        for size in SIZES
        if size > 1  # the model was fitted to one worker's speeds
    }
    near = [abs(error) <= CLOSE for error in errors.values()]
    (way, size), error = max(errors.items(), key=lambda item: abs(item[1]))
    word = "holds" if all(near) else "depends" if any(near) else "fails"
    worst = f"furthest off with {size} workers and {TOLD[way]}, by {error:+.0%}"
    return Verdict(word, f"The model is within {CLOSE:.0%} of {sum(near)} of {len(near)} speeds; {worst}.")


def _needed(runs: Runs, size: int) -> str:
    """Median and range over the rounds of the epochs needed, as in `5 (4 to >10)`.

    A round that did not reach the target counts as more than all epochs that were tried.
    """
    found = [run["epochs"] or float("inf") for run in runs[f"epochs-{size}"]]
    most = runs[f"epochs-{size}"][0]["most"]
    middle, least, largest = (
        f">{most}" if count > most else f"{count:g}" for count in (np.median(found), min(found), max(found))
    )
    return f"{middle} ({least} to {largest})"


def picture(runs: Runs) -> Picture:
    """The picture shows speed, predicted speed, memory and epochs against the number of workers."""
    figure, (left, middle, right) = panels(
        ("workers", "images/s"), ("workers", "memory a worker (MiB)"),
        ("workers", f"epochs to {_target(runs)}"), size=(8.0, 3.2),
    )  # fmt: skip
    for way, name in TOLD.items():
        found = [values(runs, way, size, "images_per_s") for size in SIZES]
        centre, reach = medians(found)
        left.errorbar(SIZES, centre, reach, capsize=3, label=name)
        model = [predicted(runs, way, size) for size in SIZES]
        left.plot(SIZES, model, ":", marker="", color=left.lines[-1].get_color(), label=f"model, {name}")
        middle.plot(SIZES, [np.median(_memory(runs, way, size)) for size in SIZES], label=name)
    for size in SIZES:
        reached = [run["epochs"] for run in runs[f"epochs-{size}"] if run["epochs"] is not None]
        right.plot([size] * len(reached), reached, "o", color=BLUE)
    for ax in (left, middle, right):
        ax.set(xticks=SIZES, ylim=(0, None))
    left.legend(fontsize=7)
    middle.legend(fontsize=7)
    needed, one = ", ".join(f"{size}: {_needed(runs, size)}" for size in SIZES), runs["epochs-1"][0]
    return Picture(
        figure,
        "Three panels against 1, 2, 4 and 8 workers: images a second with the model's prediction, memory a worker, and "
        f"epochs needed ({needed}).",
        f"On {runs['strong-1'][0]['cores']} cores (lines: range over rounds; dotted: the cost model), all with "
        f"Horovod's cycle of {CYCLE['HOROVOD_CYCLE_TIME']} ms. "
        f"Epochs to {_target(runs)} on {one['images']:,} images, {one['batch_size']} a worker, rate {BASE_RATE} times "
        f"the workers after a warmup, by workers: {needed}.",
    )


CLAIM = Claim(
    id="scaling",
    statement="A cost model of five constants predicts the speed of 1 to 8 workers.",
    source="",
    lesson="04_horovod",
    variants=tuple(f"{way}-{size}" for way in ("strong", "weak", "epochs") for size in SIZES),
    seeds=2,
    settings={"speed_images": 4096, "images": 8192, "test_images": 2000, "target": 0.45, "most": 10},
    quick={"speed_images": 1024, "images": 512, "test_images": 200, "target": 0.2, "most": 2},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few updates say little of a speed, and 512 images little of an accuracy.",
    timing_sensitive=True,
)
