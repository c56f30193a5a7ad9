"""Which way of exchanging gradients pays, over links of which speed? And does a cost model foresee it?

Two or four workers train on one, two or four hosts of this machine (package `cluster`), whose links are limited to a
rate. All ways run one after the other in the same launch, with the same network and data. Only stock Horovod needs a
launch of its own, because it has other settings.

The model (`benchmarks.cost_models.cost_model`) is fitted to some of the layouts and rates. It predicts the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import cluster
from benchmarks.cost_models import cost_model
from benchmarks.cost_models.cost_model import CostModel, Setting
from benchmarks.cost_models.ring_all_reduce import traffic
from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import LIGHT, panels
from benchmarks.instruments.horovod_launch import AS_IT_IS, on_workers
from benchmarks.methods import compression
from benchmarks.speed.loop import gradient_bytes, gradient_shapes
from benchmarks.speed.tables import Table, told
from cluster.network import bits_per_second

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAYOUTS = {"1x2": (1, 2), "2x1": (2, 1), "1x4": (1, 4), "2x2": (2, 2), "4x1": (4, 1)}  # hosts, workers on each of them
RATES = ("10gbit", "1gbit", "500mbit", "200mbit", "100mbit", "50mbit")  # of each host's link, in each direction
MEGABITS = [bits_per_second(rate) / 1e6 for rate in RATES]  # Mbit/s
SHOWN = "2x2"  # the layout that the pictures show
NO_LINK = RATES[0]  # workers of a single host use no link, so one rate is enough for them
NETWORK = "resnet9"
BATCHES = (16, 64)  # images per worker
WAYS = {
    "alone": "no exchange",
    "stock": "stock Horovod",
    "each": "each gradient when it is ready",
    "group": "one group",
    "parts": "four groups, overlapped",
    "fp16": "one group, float16",
    "ddp": "PyTorch's DDP",
    "powersgd": "DDP with PowerSGD",
    "topk": "the largest 1 %",
    "large": "batch 4 times as large",
    "accumulate": "4 batches an update",
    "local": "8 local updates",
}
FAMILIES = {  # the picture shows these ways beside the plain one, "group"
    "begin earlier": ("stock", "ddp"),
    "fewer bytes": ("fp16", "powersgd", "topk"),
    "fewer exchanges": ("large", "accumulate", "local"),
}
IN_SHORT = {"plain": "group", "earlier": "ddp", "float16": "fp16", "4 batches": "accumulate"}  # in lesson 10's exercise
PASSES = dict.fromkeys(WAYS, 1) | {"large": 4, "accumulate": 4, "local": 8}  # batches between two exchanges
OURS = [way for way in WAYS if way != "stock"]
# The model is fitted to these. All other layouts, rates and batches are predicted.
FITTED_LAYOUTS, FITTED_RATES = ("1x2", "1x4", "2x1", "4x1"), ("10gbit", "100mbit")
PREDICTED_WAYS = ("group", "parts", "fp16", "ddp", "powersgd", "topk", "large", "accumulate", "local")
COMPRESSED = ("fp16", "powersgd", "topk")  # the model is told what these ways take for their own work
AIM = 0.15  # the median error of the predictions is at most this


def variants() -> Iterator[str]:
    """Yield the variants. One is named by its layout, rate and batch, like `2x1-200mbit-16`."""
    for layout, (hosts, _) in LAYOUTS.items():
        for rate in RATES if hosts > 1 else (NO_LINK,):
            for batch in BATCHES:
                yield f"{layout}-{rate}-{batch}"


def over_rates(layout: str, batch: int) -> list[str]:
    """The variants of several hosts with this layout and batch, one for each of RATES."""
    return [f"{layout}-{rate}-{batch}" for rate in RATES]


def read(variant: str) -> Setting:
    """The workers, hosts, rate and batch of a variant."""
    layout, rate, batch = variant.split("-")
    hosts, each = LAYOUTS[layout]
    return Setting(hosts * each, hosts, bits_per_second(rate), int(batch))


def in_words(rate: str) -> str:
    """A rate like `1gbit` in words: `1 Gbit/s`."""
    megabits = bits_per_second(rate) / 1e6
    return f"{megabits / 1000:.0f} Gbit/s" if megabits >= 1000 else f"{megabits:.0f} Mbit/s"


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure all ways in one setting. Returns the images/s of all workers together, a list of rounds for each way."""
    setting, rate = read(variant), variant.split("-")[1]
    task = "benchmarks.speed.exchange_ways:seconds_per_image"
    work = {"batch_size": setting.batch, "batches": settings["batches"], "rounds": settings["rounds"]}
    found = {}
    with cluster.up(setting.hosts, rate) if setting.hosts > 1 else contextlib.nullcontext() as hosts:
        for environment, ways in (({}, OURS), (AS_IT_IS, ["stock"])):
            measured = on_workers(
                task, setting.workers, environment, hosts, ways={way: PASSES[way] for way in ways}, **work
            )
            for way in ways:
                slowest = np.max([worker[way] for worker in measured], axis=0)
                found[way] = [float(setting.workers / seconds) for seconds in slowest]
    return {"images_per_s": found}


def speeds(runs: Runs, variant: str, way: str) -> np.ndarray:
    """The images/s of a way, one value for each launch: the median over its rounds."""
    return np.array([np.median(values["images_per_s"][way]) for values in runs[variant]])


def seconds(runs: Runs, variant: str, way: str) -> float:
    """The seconds from one exchange of a way to the next, the median over all launches."""
    setting = read(variant)
    images = setting.workers * setting.batch * PASSES[way]
    return images / float(np.median(speeds(runs, variant, way)))


def ring_of_four(bits_per_s: float) -> float:
    """The seconds in which a worker of a ring of four sends its bytes of an exchange over a link of this rate."""
    return traffic(4, gradient_bytes(NETWORK))[1] * 8 / bits_per_s


def is_fitted(variant: str) -> bool:
    """Whether the model is fitted to this variant."""
    layout, rate, _ = variant.split("-")
    return layout in FITTED_LAYOUTS and rate in FITTED_RATES


def model(runs: Runs) -> CostModel:
    """The cost model, fitted to some of the variants."""
    fitted = [variant for variant in runs if is_fitted(variant)]
    measured = [(read(one), seconds(runs, one, "alone"), seconds(runs, one, "group")) for one in fitted]
    made = cost_model.fit(measured, gradient_bytes(NETWORK))
    return dataclasses.replace(made, own=own_work(made, runs, fitted))


def own_work(made: CostModel, runs: Runs, fitted: list[str]) -> dict[tuple[str, int], float]:
    """The seconds of compressing, by way and number of workers, from those of the variants with the fastest links."""
    found: dict[tuple[str, int], list[float]] = {}
    for way, variant in itertools.product(COMPRESSED, fitted):
        if variant.split("-")[1] == NO_LINK:
            without = as_fast_alone(made, runs, variant).update(way, read(variant), handed_over(way))
            found.setdefault((way, read(variant).workers), []).append(seconds(runs, variant, way) - without)
    return {key: max(0.0, float(np.median(times))) for key, times in found.items()}


def handed_over(way: str) -> float:
    """The bytes that a worker hands over at each exchange."""
    whole = gradient_bytes(NETWORK)
    if way == "topk":
        return compression.top_k_bytes(whole // compression.VALUE)
    if way == "powersgd":
        return compression.power_sgd_bytes(gradient_shapes(NETWORK))
    return whole / 2 if way == "fp16" else whole


def predicted(made: CostModel, variant: str, way: str) -> float:
    """The images/s that the model predicts for a way."""
    return speed(made, read(variant), way)


def speed(made: CostModel, setting: Setting, way: str) -> float:
    """The images/s that the model predicts for a way in any setting."""
    images = setting.workers * setting.batch * PASSES[way]
    return images / made.update(way, setting, handed_over(way), PASSES[way])


def rounds(runs: Runs) -> list[Runs]:
    """The runs of each round by themselves. Other rounds may come from another kind of machine."""
    count = min(len(values) for values in runs.values())
    return [{variant: [values[number]] for variant, values in runs.items()} for number in range(count)]


def errors(runs: Runs, way: str, *, alone_known: bool = False) -> np.ndarray:
    """The relative errors of the predictions for a way, of shape (rounds, variants).

    The model is fitted to each round. The errors are those for the other variants of the same round. With
    `alone_known`, the model is told how fast the workers of each variant train without an exchange.
    """
    found = []
    for of_round in rounds(runs):
        fitted, others = model(of_round), [variant for variant in runs if not is_fitted(variant)]
        models = {one: as_fast_alone(fitted, of_round, one) if alone_known else fitted for one in others}
        found.append([predicted(made, one, way) / speeds(of_round, one, way)[0] - 1 for one, made in models.items()])
    return np.array(found)


def as_fast_alone(made: CostModel, runs: Runs, variant: str) -> CostModel:
    """The model with another speed of computing: the one that was measured without an exchange in this variant."""
    setting = read(variant)
    slower = seconds(runs, variant, "alone") / made.compute(setting.workers, setting.batch)
    fixed, each = made.computing[setting.workers]
    return dataclasses.replace(made, computing={setting.workers: (slower * fixed, slower * each)})


def gains(runs: Runs, variant: str, way: str, over: str = "group") -> np.ndarray:
    """The speed of a way divided by that of another one, one value for each launch."""
    return speeds(runs, variant, way) / speeds(runs, variant, over)


def table(runs: Runs) -> Table:
    """The table has a row for each variant: the speed without exchange, and what each way keeps of it."""
    rows = []
    for variant in runs:
        layout, rate, batch = variant.split("-")
        hosts = LAYOUTS[layout][0]
        kept = [f"{np.median(gains(runs, variant, way, 'alone')):.0%}" for way in WAYS if way != "alone"]
        rows.append((layout, rate if hosts > 1 else "-", batch, told(speeds(runs, variant, "alone"), 0), *kept))
    heads = "hosts x workers", "link", "batch", "images/s alone", *(WAYS[way] for way in WAYS if way != "alone")
    return Table(heads, rows)


def judge(runs: Runs) -> Verdict:
    """The claim holds if the median error of all predictions is at most AIM."""
    found = {way: np.abs(errors(runs, way)) for way in PREDICTED_WAYS}
    everything = np.concatenate(list(found.values()), axis=1)
    middle, by_round = float(np.median(everything)), np.median(everything, axis=1)
    parts = ", ".join(f"{WAYS[way]} {np.median(found[way]):.0%}" for way in PREDICTED_WAYS)
    word = "holds" if middle <= AIM else "fails"
    spread = f" ({by_round.min():.0%} to {by_round.max():.0%} in a round)" if len(by_round) > 1 else ""
    return Verdict(word, f"The median error is {middle:.0%}{spread} over all held-out settings; by way: {parts}.")


def by_rate(runs: Runs, way: str, batch: int = min(BATCHES)) -> list[float]:
    """The images/s of a way on the hosts of the picture, one value for each rate of the links."""
    return [float(np.median(speeds(runs, variant, way))) for variant in over_rates(SHOWN, batch)]


def seconds_alone(runs: Runs) -> float:
    """The seconds of an update without exchange on the hosts of the picture: the median over the rates."""
    hosts, each = LAYOUTS[SHOWN]
    return hosts * each * min(BATCHES) / float(np.median(by_rate(runs, "alone")))


def draw_ways(ax: Axes, runs: Runs, ways: tuple[str, ...]) -> None:
    """Draw the speed of the plain way and of some others over the rate of the links.

    Training without exchange uses no link. So it is a band, from the slowest to the fastest of its runs.
    """
    alone = by_rate(runs, "alone")
    ax.axhspan(min(alone), max(alone), color=LIGHT, label=WAYS["alone"])
    for way in ("group", *ways):
        ax.plot(MEGABITS, by_rate(runs, way), label=WAYS[way], **({"linewidth": 3} if way == "group" else {}))
    ax.set(xscale="log", ylim=(0, 1.25 * max(max(by_rate(runs, way)) for way in WAYS)))
    ax.set_xticks(MEGABITS, [f"{rate:,.0f}" for rate in MEGABITS], fontsize=8)
    ax.minorticks_off()
    ax.legend(fontsize=8, loc="upper left")


def picture(runs: Runs) -> Picture:
    """The picture shows the speed over the rate of the links: a panel for each family, with some of its ways."""
    batch = min(BATCHES)
    figure, axes = panels(
        *[("rate of the links (Mbit/s)", "images/s of all workers")] * len(FAMILIES), size=(10.0, 4.2)
    )
    for ax, (family, ways) in zip(axes, FAMILIES.items(), strict=True):
        draw_ways(ax, runs, ways)
        ax.set_title(family)
    return Picture(
        figure,
        f"Three panels, one for each family of ways: {', '.join(FAMILIES)}. Each shows images a second over the rate "
        "of the links, from 50 Mbit/s to 10 Gbit/s, beside the plain way and beside training without exchange.",
        f"Two workers on each of two hosts, with {batch} images for each worker, or {PASSES['large'] * batch} if the "
        "batch is 4 times as large. The thick line is the plain way. The grey band is no way to train: each worker "
        f"trains alone there, as if the exchange cost nothing. It goes from the slowest to the fastest of {len(RATES)} "
        "links.",
    )


CLAIM = Claim(
    id="links",
    statement="A cost model that was fitted to some hosts, links and batches predicts the speed of the others.",
    source="",
    lesson="10_what_comes_next",
    variants=tuple(variants()),
    seeds=3,
    settings={"batches": 8, "rounds": 2},
    quick={"batches": 8, "rounds": 1},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few updates say little of a speed.",
    timing_sensitive=True,
    rounds_apart=True,  # the model is fitted to each round, and each way is compared with others of the same launch
)
