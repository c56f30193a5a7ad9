"""How much faster do workers train if each has a core of its own, as it would have a GPU?

One worker usually takes all cores of this machine. More workers then share the same cores, and cannot be faster. Here,
each worker has one core. So two workers have twice as many cores as one. More workers than cores cannot be measured.
The cost model (`benchmarks.cost_models.cost_model`) says what 4 and 8 such workers would do.
"""

import numpy as np

from benchmarks.cost_models.cost_model import CostModel, Setting, fit_computing
from benchmarks.cost_models.ring_all_reduce import fit_constants, traffic
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import GREY, medians, panels
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.speed.tables import Table, told

BATCH = 64  # images per update: of all workers together (strong), of each one (weak)
MEASURED, PREDICTED = (1, 2), (4, 8)  # numbers of workers
WAYS = {"weak": f"{BATCH} images a worker", "strong": f"{BATCH} images in all"}
SMALL = 4096  # bytes of the small all-reduce; its time is mostly that of the messages
EXCHANGES = 20  # all-reduces of each size
FASTER = 1.5  # The claim holds if two workers are at least so many times as fast as one, in both ways.


def work(batches: dict[str, int], updates: int, rounds: int) -> dict:
    """Runs on a worker. Returns its seconds per image by way and batch, and the seconds of all-reduces of two sizes."""
    import horovod.torch as hvd

    from benchmarks.cost_models.ring_all_reduce import all_reduce_seconds
    from benchmarks.speed import exchange_ways, loop

    exchange_ways.stay_on_one_core()
    ways = {"alone": 1, "group": 1}
    found = {way: exchange_ways.seconds_per_image(ways, batch, updates, rounds) for way, batch in batches.items()}
    sizes = [SMALL, loop.gradient_bytes("resnet9")]
    return found | {"bytes": sizes, "all_reduce": all_reduce_seconds(sizes, EXCHANGES) if hvd.size() > 1 else []}


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure one number of workers. Returns the images/s of all together, by way, and the seconds of all-reduces."""
    workers = int(variant)
    batches = {"weak": BATCH, "strong": BATCH // workers}
    options = {"updates": settings["updates"], "rounds": settings["rounds"]}
    found = on_workers(f"{__name__}:work", workers, batches=batches, **options)
    speeds = {
        way: {
            kind: float(np.median(workers / np.max([worker[way][kind] for worker in found], axis=0)))
            for kind in ("alone", "group")
        }
        for way in batches
    }
    return {"images_per_s": speeds, "bytes": found[0]["bytes"], "all_reduce": found[0]["all_reduce"]}


def speeds(runs: Runs, workers: int, way: str) -> np.ndarray:
    """The images/s of all workers together, with exchange: one value for each launch."""
    return np.array([values["images_per_s"][way]["group"] for values in runs[str(workers)]])


def speed_ups(runs: Runs, workers: int, way: str) -> np.ndarray:
    """How many times as fast the workers are as one. One value for each round."""
    return speeds(runs, workers, way) / speeds(runs, 1, way)


def model(runs: Runs) -> CostModel:
    """The cost model of workers with a core each.

    An update without exchange takes as long on each number of workers, because each has a core. The seconds come from
    two workers, whose batches differ in the two ways. The other constants come from two sizes of all-reduces.
    """
    two = runs["2"]
    found = {way: np.median([values["images_per_s"][way]["alone"] for values in two]) for way in WAYS}
    slow, fast = 2 * BATCH / found["weak"], BATCH / found["strong"]  # seconds of an update
    computing = fit_computing([BATCH, BATCH // 2], [slow, fast])
    exchanges = [traffic(2, size) for size in two[0]["bytes"]]
    message, byte = fit_constants(exchanges, np.median([values["all_reduce"] for values in two], axis=0))
    return CostModel(dict.fromkeys((*MEASURED, *PREDICTED), computing), message, byte, links=0.0)


def predicted(runs: Runs, workers: int, way: str) -> float:
    """How many times as fast as one worker the model says that so many are."""
    made, size = model(runs), runs["2"][0]["bytes"][1]

    def speed(count: int) -> float:
        batch = BATCH if way == "weak" else BATCH // count
        return count * batch / made.update("group", Setting(count, 1, 1.0, batch), size)

    return speed(workers) / speed(1)


def table(runs: Runs) -> Table:
    """The table has a row for each way and number of workers: images/s, the speed-up, and what the model says."""
    rows = []
    for way, name in WAYS.items():
        for workers in (*MEASURED, *PREDICTED):
            seen = workers in MEASURED
            speed = told(speeds(runs, workers, way), 0) if seen else "-"
            up = told(speed_ups(runs, workers, way), 2) if seen else "-"
            rows.append((name, str(workers), speed, up, f"{predicted(runs, workers, way):.2f}"))
    return Table(("batch", "workers", "images/s", "times as fast as one", "predicted"), rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if two workers are at least FASTER times as fast as one, in both ways and in every round."""
    found = {way: speed_ups(runs, 2, way) for way in WAYS}
    enough = [bool((values >= FASTER).all()) for values in found.values()]
    word = "holds" if all(enough) else "depends" if any(enough) else "fails"
    parts = ", ".join(f"{told(values, 2)} times with {WAYS[way]}" for way, values in found.items())
    return Verdict(word, f"Two workers with a core each are faster than one with one core: {parts}.")


def picture(runs: Runs) -> Picture:
    """The picture shows how many times as fast as one more workers are, measured and predicted."""
    counts = (*MEASURED, *PREDICTED)
    figure, axes = panels(*(("workers, with a core each", f"times as fast as one, {name}") for name in WAYS.values()))
    for ax, way in zip(axes, WAYS, strict=True):
        ax.plot(counts, counts, ":", color=GREY, marker="", label="ideal")
        ax.plot(counts, [predicted(runs, workers, way) for workers in counts], "--", marker="", label="predicted")
        found = [speed_ups(runs, workers, way) for workers in MEASURED]
        middle, reach = medians(found)
        ax.errorbar(MEASURED, middle, reach, fmt="o", capsize=3, label="measured")
        ax.set(xticks=counts, ylim=(0, None))
    axes[0].legend(fontsize=8)
    ends = "; ".join(f"{name}: {predicted(runs, 8, way):.1f} times" for way, name in WAYS.items())
    return Picture(
        figure,
        f"Two panels: the speed of 1, 2, 4 and 8 workers over that of one. {judge(runs).sentence}",
        f"{judge(runs).sentence} The model says for 8 workers: {ends}.",
    )


CLAIM = Claim(
    id="cores",
    statement=f"With a core for each worker, two workers are at least {FASTER} times as fast as one.",
    source="",
    lesson="03_data_parallelism_by_hand",
    variants=tuple(map(str, MEASURED)),
    seeds=5,
    settings={"updates": 16, "rounds": 3},
    quick={"updates": 10, "rounds": 1},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few updates say little of a speed, and other programs on your machine slow the two workers down.",
    timing_sensitive=True,
)
