"""How much time does the exchange of gradients take?

Our way is compared with stock Horovod, with PyTorch's DistributedDataParallel, and with no exchange. Four workers with
one thread each run the same loop with the same network, data and order. Only the exchange of gradients differs. One way
exchanges no gradients, but waits for the other workers before each step. Every exchange loses at least as much time.
"""

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import medians, panels
from benchmarks.instruments.gloo_processes import on_peers
from benchmarks.instruments.horovod_launch import AS_IT_IS, on_workers
from benchmarks.speed.loop import NAMES, images_per_s
from benchmarks.speed.tables import Table, told
from grader.common.contract import WORKERS

BATCHES = (64, 512)  # images per worker: with fewer images an update is shorter, and the exchange matters more
WAYS = {"alone": "no exchange", "wait": "waiting alone", "ours": "ours", "ddp": "DDP (Gloo)", "stock": "stock Horovod"}
# The environment variables and the options of the loop, for each way that uses Horovod.
HOROVOD = {
    "ours": ({}, {"sleep": True, "groups": 1}),
    "stock": (AS_IT_IS, {"sleep": False, "groups": None}),
}
# The least ratio of our speed to that of another way, by the way and its images per worker.
AIMS = {("alone", 512): 0.95, ("alone", 64): 0.90, ("ddp", 512): 0.97, ("ddp", 64): 0.97, ("stock", 64): 1.5}


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the images/s of four workers together, which is the sum of their speeds."""
    network, batch, way = variant.split("-")
    updates = max(settings["updates"], settings["images"] // WORKERS // int(batch))
    options = {"network": network, "batch_size": int(batch), "updates": updates}
    if way in HOROVOD:
        environment, means = HOROVOD[way]
        seconds = on_workers("benchmarks.speed.loop:horovod", WORKERS, environment, **means, **options)
    else:
        seconds = on_peers("benchmarks.speed.loop:peer", WORKERS, way=way, **options)
    return {"images_per_s": images_per_s(int(batch), updates, seconds)}


def speeds(runs: Runs, network: str, batch: int, way: str) -> np.ndarray:
    """The images/s of a way, one value per round."""
    return np.array([run["images_per_s"] for run in runs[f"{network}-{batch}-{way}"]])


def ratios(runs: Runs, network: str, batch: int, other: str, way: str = "ours") -> np.ndarray:
    """The speed of `way`, by default ours, divided by the speed of `other`: one value per round."""
    return speeds(runs, network, batch, way) / speeds(runs, network, batch, other)


def table(runs: Runs) -> Table:
    """The table has one row per ratio. Ratios with an aim come first."""
    rows = [
        (
            name, str(batch), WAYS[other], told(ratios(runs, network, batch, other), 3), f"at least {aim:.2f}",
            _met(runs, network, batch, other),
        )
        for network, name in NAMES.items()
        for (other, batch), aim in AIMS.items()
    ]  # fmt: skip
    rows += [
        (name, str(batch), WAYS[other], told(ratios(runs, network, batch, other), 3), "-", "")
        for network, name in NAMES.items()
        for other, batch in (("wait", 512), ("wait", 64), ("stock", 512))
    ]
    return Table(("network", "images a worker", "our speed over", "ratio", "aim", "met"), rows)


def met(runs: Runs, network: str, batch: int, other: str) -> bool:
    """Whether the median ratio reaches the aim. One disturbed round alone cannot move the median beyond the others."""
    return bool(np.median(ratios(runs, network, batch, other)) >= AIMS[other, batch])


def _met(runs: Runs, network: str, batch: int, other: str) -> str:
    """`yes` or `no`. If some rounds disagree, the number of rounds that agree follows."""
    yes = met(runs, network, batch, other)
    enough = ratios(runs, network, batch, other) >= AIMS[other, batch]
    agreeing = (enough == yes).sum()
    word = "yes" if yes else "no"
    return word if agreeing == len(enough) else f"{word} ({agreeing} of {len(enough)} rounds)"


def judge(runs: Runs) -> Verdict:
    """The claim holds if the median over the rounds meets every aim, and fails if it meets none."""
    found = {(network, *aim): met(runs, network, aim[1], aim[0]) for network in NAMES for aim in AIMS}
    word = "holds" if all(found.values()) else "depends" if any(found.values()) else "fails"
    missed = [
        f"{NAMES[network]} with {batch} images a worker over {WAYS[other]}: "
        f"{told(ratios(runs, network, batch, other), 3)} instead of {AIMS[other, batch]:.2f}"
        f"{_waiting(runs, network, batch) if other == 'alone' else ''}"
        for (network, other, batch), yes in found.items()
        if not yes
    ]
    text = f"{sum(found.values())} of {len(found)} aims are met"
    return Verdict(word, f"{text}; not: {'; '.join(missed)}." if missed else f"{text}.")


def _waiting(runs: Runs, network: str, batch: int) -> str:
    """Our speed divided by that of workers that only wait for each other, as text. Sending must explain the rest."""
    left = ratios(runs, network, batch, "wait")
    return f" (over workers that only wait for each other, with nothing sent: {told(left, 3)})"


def picture(runs: Runs) -> Picture:
    """The picture shows bars of images/s, in one panel per network."""
    figure, axes = panels(*(("images a worker and update", f"images/s, {name}") for name in NAMES.values()))
    for ax, network in zip(axes, NAMES, strict=True):
        for at, (way, label) in enumerate(WAYS.items()):
            found = [speeds(runs, network, batch, way) for batch in BATCHES]
            middle, reach = medians(found)
            ax.bar(np.arange(2) + 0.17 * (at - 2), middle, 0.15, yerr=reach, capsize=2, label=label)
        ax.set_xticks(range(2), map(str, BATCHES))
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, ncols=len(WAYS), loc="outside lower center")
    shares = {
        name: f"{np.median(ratios(runs, network, 64, 'alone')):.0%} with 64 images a worker and "
        f"{np.median(ratios(runs, network, 512, 'alone')):.0%} with 512"
        for network, name in NAMES.items()
    }
    parts = "; ".join(f"{name}: {share}" for name, share in shares.items())
    return Picture(
        figure,
        f"Two panels of bars, {len(WAYS)} ways at two batch sizes. Our speed as a share of that without exchange: "
        f"{parts}.",
        f"Four workers. Of the speed without exchange ours keeps: {parts} (bars: median; lines: range over rounds). "
        "Ours sends all gradients in one group; stock is the same build with Horovod's own cycle times, waiting and "
        "grouping; DDP sends no buffers, as neither of the two does; all have the same threads and memory settings.",
    )


CLAIM = Claim(
    id="communication",
    statement="Exchanging gradients costs little, hardly more than with DDP, and with small batches far less than with "
    "stock Horovod.",
    source="",
    lesson="04_horovod",
    variants=tuple(f"{network}-{batch}-{way}" for network in NAMES for batch in BATCHES for way in WAYS),
    seeds=3,
    settings={"images": 4096, "updates": 4},
    quick={"images": 512, "updates": 2},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few updates say little of a ratio.",
    timing_sensitive=True,
)
