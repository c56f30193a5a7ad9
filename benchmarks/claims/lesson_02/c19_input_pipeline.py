"""C19: do input pipeline and network together decide the end-to-end speed?

Each stage is timed alone: fetch by index, augment, normalise, update. Then whole pipelines run, once with one stage
after the other, and once with the next batches prepared in a thread. Theory says that the stages' times add up in the
first case. In the second case only the slower of preparation and update counts. Each of the two has one thread, so that
neither takes the other's core.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import deviation, paired
from benchmarks.experiment.plots import BLUE, BROWN, GREY, LIGHT, YELLOW, counted, panels
from benchmarks.instruments.step_timing import Stepper, finish, seconds
from benchmarks.methods.jpeg_files import JpegFiles, as_jpeg
from cifar.data import Split, augment, normalise, shuffle
from cifar.support import palette
from cifar.support.environment import cores

NEAR = 0.8  # a ratio of rates from 0.8 to 1 / 0.8 is near: queues, Python's lock and shared memory explain the rest
MATTERS = 1.1  # a pipeline matters if it changes the rate of the same network at least by this factor
DECODED = "decoded"  # each image is a file that has to be decoded
SMALL = "loop small network"  # a network that is hardly more than nothing
Batch = tuple[Tensor, Tensor]  # images and labels
Images = Split | JpegFiles


@dataclass(frozen=True)
class Pipeline:
    """How the images are stored before training, and how a batch is prepared: fetched, augmented and normalised."""

    store: Callable[[Split], Images]
    fetch: Callable[[Images, Tensor], Tensor]
    augment: Callable[[Tensor], Tensor]
    normalise: Callable[[Tensor], Tensor]


def _each(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function that applies `change` to one image after the other, as a data set of single images does."""
    return lambda images: torch.cat([change(image) for image in images.split(1)])


def _fetch(split: Images, indices: Tensor) -> Tensor:
    return split.batch(indices)[0]


def _fetch_each(split: Images, indices: Tensor) -> Tensor:
    return torch.cat([split.batch(index)[0] for index in indices.split(1)])


def _as_they_are(images: Split | Tensor) -> Split | Tensor:
    return images


def _prepared(split: Split) -> Split:
    return Split(split.name, normalise(augment(split.images)), split.labels)


VECTORISED = Pipeline(_as_they_are, _fetch, augment, normalise)
LOOP = Pipeline(_as_they_are, _fetch_each, _each(augment), _each(normalise))
CACHED = Pipeline(_prepared, _fetch, _as_they_are, _as_they_are)
FROM_FILES = Pipeline(as_jpeg, _fetch, augment, normalise)
VARIANTS = {
    "vectorised": (VECTORISED, None),
    DECODED: (FROM_FILES, None),
    "loop": (LOOP, None),
    "cached": (CACHED, None),
    SMALL: (LOOP, lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))),
}


def prefetched(prepare: Callable, items: Iterable, depth: int = 2) -> Iterator:
    """`prepare(item)` of each item, `depth` of them ahead, in a thread."""
    with ThreadPoolExecutor(1) as thread:
        ahead = deque()
        for item in items:
            ahead.append(thread.submit(prepare, item))
            if len(ahead) > depth:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the seconds of each stage alone, and the images per second of the whole, in turn and prefetched."""
    split, _ = data(settings)
    device = split.images.device
    split = Split(split.name, split.images.cpu(), split.labels.cpu())  # the processor prepares the batches
    torch.set_num_threads(1)
    try:
        return _measured(variant, seed, split, device, settings)
    finally:
        torch.set_num_threads(cores())


def _measured(variant: str, seed: int, split: Split, device: torch.device, settings: Settings) -> Values:
    torch.manual_seed(seed)
    pipeline, build = VARIANTS[variant]
    images = pipeline.store(split)
    step = Stepper(device, build() if build else None)
    parts = shuffle(len(images), seed, 0).split(settings["batch"])
    prepare, alone = partial(_prepare, pipeline, images, device), (parts[0], device, settings["repeats"])
    ways = {"in_turn": partial(map, prepare), "prefetched": partial(prefetched, prepare)}
    before = _stages(pipeline, step, images, *alone)
    rates = {way: _rate(step, ways[way](parts), device) for way in sorted(ways, reverse=bool(seed % 2))}
    # The stages are measured twice, because the machine's speed may have changed meanwhile.
    after = _stages(pipeline, step, images, *alone)
    return {"batch": settings["batch"], "stages": {name: (before[name] + after[name]) / 2 for name in before}} | rates


def _prepare(pipeline: Pipeline, split: Images, device: torch.device, indices: Tensor) -> Batch:
    images = pipeline.normalise(pipeline.augment(pipeline.fetch(split, indices)))
    images = images.contiguous(memory_format=torch.channels_last)
    return images.to(device), split.labels[indices].to(device)


def _stages(
    pipeline: Pipeline, step: Stepper, split: Images, indices: Tensor, device: torch.device, repeats: int
) -> dict[str, float]:
    """The median seconds of each stage for one batch."""
    fetched = pipeline.fetch(split, indices)
    augmented = pipeline.augment(fetched)
    batch = _prepare(pipeline, split, device, indices)
    works = {
        "fetch": partial(pipeline.fetch, split, indices),
        "distort": partial(pipeline.augment, fetched),
        "normalise": partial(pipeline.normalise, augmented),
        "update": partial(step, *batch),
    }
    return {name: seconds(work, device, repeats) for name, work in works.items()}


def _rate(step: Stepper, batches: Iterable[Batch], device: torch.device) -> float:
    """The images per second, counted from the end of the first update."""
    started, images = None, 0
    for batch in batches:
        step(*batch)
        finish(device)
        if started is None:
            started = time.perf_counter()
        else:
            images += len(batch[1])
    return images / (time.perf_counter() - started)


def predicted(run: Values, overlapped: bool) -> float:
    """The images per second that the stages' times predict.

    If preparation and update are `overlapped`, the slower one counts, otherwise their sum.
    """
    *preparation, update = run["stages"].values()
    return run["batch"] / (max(sum(preparation), update) if overlapped else sum(preparation) + update)


def speeds(runs: Runs, variant: str, name: str) -> tuple[float, float]:
    """The measured and the predicted images per second, averaged over the seeds."""
    found = runs[variant]
    return (
        float(np.mean([run[name] for run in found])),
        float(np.mean([predicted(run, name == "prefetched") for run in found])),
    )


def _off(runs: Runs, variant: str, name: str) -> tuple[float, float]:
    """The 95 % interval of the ratio of measured to predicted rate. For a single run both ends are its ratio."""
    logs = [np.log([run[name], predicted(run, name == "prefetched")]) for run in runs[variant]]
    ratio = paired(*zip(*logs, strict=True))
    low, high = (ratio.low, ratio.high) if len(logs) > 1 else (ratio.mean, ratio.mean)
    return float(np.exp(low)), float(np.exp(high))


def _named(key: tuple[str, str]) -> str:
    return f"{key[0]} {key[1].replace('_', ' ')}"


def judge(runs: Runs) -> Verdict:
    """The claim holds if the pipeline matters to the same network, and the stages' times predict every rate."""
    rates = {(variant, name): speeds(runs, variant, name) for variant in runs for name in ("in_turn", "prefetched")}
    gain = rates["cached", "in_turn"][0] / rates["loop", "in_turn"][0]
    ratios = {key: _off(runs, *key) for key in rates}
    off = {key: ratio for key, ratio in ratios.items() if ratio[1] < NEAR or ratio[0] > 1 / NEAR}
    unclear = [key for key, (low, high) in ratios.items() if key not in off and (low < NEAR or high > 1 / NEAR)]
    text = "; ".join(
        f"{variant}: {rates[variant, 'in_turn'][0]:.0f} images/s in turn "
        f"({rates[variant, 'in_turn'][1]:.0f} by the sum of the stages), "
        f"{rates[variant, 'prefetched'][0]:.0f} prefetched "
        f"({rates[variant, 'prefetched'][1]:.0f} by the slower one)"
        for variant in runs
    )
    if gain < MATTERS:
        return Verdict("fails", f"the network alone decides, its images may come as they like: {text}.")
    if off:
        where = ", ".join(f"{_named(key)} {low:.2f} to {high:.2f}" for key, (low, high) in off.items())
        return Verdict(
            "depends", f"both matter, but not all is as the stages say (measured over predicted: {where}): {text}."
        )
    if unclear:
        where = ", ".join(map(_named, unclear))
        return Verdict("depends", f"both matter; the runs scatter too much to say if stages predict {where}: {text}.")
    return Verdict("holds", f"in turn the stages add up, prefetched the slower side sets the pace: {text}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the time of each stage, and the measured and predicted times of the whole pipelines."""
    figure, (left, right) = panels(("time for one image (ms)", "pipeline"), ("time for one image (ms)", ""))
    draw_stages(left, runs)
    draw_wholes(right, runs)
    right.set(xlim=left.get_xlim(), yticklabels=[])  # both panels have the same pipelines and the same scale
    listed = "; ".join(
        f"{variant}: {speeds(runs, variant, 'in_turn')[0]:.0f} and {speeds(runs, variant, 'prefetched')[0]:.0f}"
        for variant in runs
    )
    return Picture(
        figure,
        "Left, stacked bars of the stages' times for one image, one bar for each pipeline. Right, bars of the time "
        "that the whole pipeline takes for one image, in turn and prefetched, and diamonds where the stages predict "
        f"it. In images a second: {listed}.",
        f"Images a second in turn and prefetched, {counted(len(runs['loop']), 'run')}: {listed}. Diamonds: predicted "
        "from the stages, as their sum in turn, as the slower side when prefetched. A black line is one standard "
        "deviation to each side.",
    )


def draw_stages(ax: Axes, runs: Runs) -> None:
    """Draw a bar for each pipeline: the milliseconds of its stages for one image, one after the other."""
    places, ends = np.arange(len(runs)), np.zeros(len(runs))
    looks = {
        "fetch": (palette.CARD, ".."),
        "distort": (LIGHT, "//"),
        "normalise": (YELLOW, ""),
        "update": (BLUE, ""),
    }
    for stage, (colour, hatch) in looks.items():
        widths = [np.mean([1000 * run["stages"][stage] / run["batch"] for run in found]) for found in runs.values()]
        ax.barh(places, widths, left=ends, color=colour, hatch=hatch, edgecolor=GREY, label=stage)
        ends = ends + widths
    ax.set_yticks(places, list(runs))
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8)


def draw_wholes(ax: Axes, runs: Runs, rate: Callable[[Values, bool], float] = predicted) -> None:
    """Draw the measured milliseconds of an image, in turn and prefetched, and diamonds where `rate` predicts them."""
    places = np.arange(len(runs))
    for shift, name, colour in ((-0.2, "in_turn", LIGHT), (0.2, "prefetched", BLUE)):
        measured = [[1000 / run[name] for run in found] for found in runs.values()]
        theory = [np.mean([1000 / rate(run, name == "prefetched") for run in found]) for found in runs.values()]
        ax.barh(
            places + shift, [np.mean(times) for times in measured], 0.4, xerr=[deviation(times) for times in measured],
            color=colour, label=name.replace("_", " "),
        )  # fmt: skip
        ax.plot(theory, places + shift, "D", linestyle="", color=BROWN, label="predicted" if shift > 0 else None)
    ax.set_yticks(places, list(runs))
    ax.invert_yaxis()
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8)


CLAIM = Claim(
    id="C19",
    statement="Input pipeline and network together decide the end-to-end speed.",
    source="S1, S2",
    lesson="12_lab_of_lesson_02",
    variants=tuple(VARIANTS),
    seeds=5,
    settings={"images": 12_800, "batch": 128, "repeats": 20},
    quick={"images": 768, "repeats": 4},
    run=run,
    judge=judge,
    picture=picture,
    caution="Prefetching needs a second core that is idle, and in few batches a hiccup of the machine counts for much.",
    timing_sensitive=True,
)
