"""C16: does throughput stop growing with the batch size, and where?

Updates of the lessons' network are timed for batches from 1 image up. In the model t = t0 + c B, an update takes a
fixed time t0 and a time c for each image. It predicts B / t images per second, with the limit 1 / c. At the knee,
B = t0 / c, half of this limit is reached. The knee is also read from the measured rates, as the batch that reaches half
of the best rate.
"""

from functools import partial

import numpy as np
import torch

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import BLUE, BROWN, GREY, counted, panels
from benchmarks.instruments.step_timing import Stepper, seconds
from cifar.data import normalise

STILL_GROWING = 1.1  # if doubling the batch raises the rate by a larger factor, the limit has not been reached
SAME_PLACE = 2.0  # batch sizes are doubled from one to the next, so the knee is known only within this factor


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the median seconds of an update for each batch size."""
    split, _ = data(settings)
    torch.manual_seed(seed)
    step = Stepper(split.images.device)
    batches = [2**power for power in range(settings["largest"].bit_length())]
    times = []
    for size in batches:
        images, labels = split.batch(torch.randint(len(split), (size,)))
        work = partial(step, normalise(images), labels)
        times.append(seconds(work, split.images.device, settings["repeats"]))
    return {"batches": batches, "seconds": times}


def line(batches: list[int], times: list[float]) -> tuple[float, float]:
    """Fit t0 and c in seconds, by least squares of the relative errors.

    With absolute errors, the largest batches alone would decide the fit.
    """
    columns = np.stack([np.ones(len(batches)), np.array(batches)], 1) / np.array(times)[:, None]
    fixed, each = np.linalg.lstsq(columns, np.ones(len(batches)), rcond=None)[0]
    return max(float(fixed), 0.0), float(each)


def half_rate(batches: list[int], times: list[float]) -> float:
    """The batch size with half of the best measured rate. It is interpolated between the sizes that were tried."""
    rates = np.array(batches) / np.array(times)
    after = int(np.argmax(rates >= rates.max() / 2))
    if after == 0:
        return float(batches[0])
    place = np.interp(rates.max() / 2, rates[after - 1 : after + 1], np.log2(batches[after - 1 : after + 1]))
    return float(2**place)


def _summary(runs: Runs) -> dict[str, list[float]]:
    """Lists with one value per run: t0 (ms), c (ms), the fitted and the measured knee (images), and the growth.

    The growth is the factor by which the last doubling of the batch changes the rate.
    """
    found = {"t0": [], "c": [], "fitted": [], "measured": [], "growth": []}
    for run in runs["updates"]:
        batches, times = run["batches"], run["seconds"]
        fixed, each = line(batches, times)
        rates = np.array(batches) / np.array(times)
        values = (1000 * fixed, 1000 * each, fixed / each, half_rate(batches, times), rates[-1] / rates[-2])
        for name, value in zip(found, values, strict=True):
            found[name].append(float(value))
    return found


def judge(runs: Runs) -> Verdict:
    """The claim holds if the last doubling hardly raises the rate, and half of the limit is reached near t0 / c."""
    found = _summary(runs)
    last = runs["updates"][0]["batches"][-1]
    fitted, measured, growth = (np.mean(found[name]) for name in ("fitted", "measured", "growth"))
    text = (
        f"t0 = {mean_std(found['t0'])} ms and c = {mean_std(found['c'], digits=3)} ms an image put the knee at "
        f"{mean_std(found['fitted'], digits=1)} images, measured at {mean_std(found['measured'], digits=1)}; from "
        f"{last // 2} to {last} images the rate changes by {100 * (growth - 1):+.0f} %."
    )
    if growth > STILL_GROWING:
        return Verdict("fails", f"up to here it still grows: {text}")
    if max(fitted, measured) <= SAME_PLACE * max(min(fitted, measured), 1):
        return Verdict("holds", text)
    return Verdict("depends", f"it stops growing, but not where t0 + c B says: {text}")


def picture(runs: Runs) -> Picture:
    """The picture shows the time of an update and the images per second, both with the fitted model."""
    figure, (left, right) = panels(
        ("per-worker batch (images)", "update (ms)"), ("per-worker batch (images)", "images/s")
    )
    batches = np.array(runs["updates"][0]["batches"])
    for number, run in enumerate(runs["updates"]):
        label, times = "measured" if number == 0 else None, np.array(run["seconds"])
        left.loglog(batches, 1000 * times, "o", color=BLUE, label=label)
        right.semilogx(batches, batches / times, "o", color=BLUE, label=label)
    found = {name: float(np.mean(values)) for name, values in _summary(runs).items()}
    model = found["t0"] + found["c"] * batches
    for ax, values in ((left, model), (right, 1000 * batches / model)):
        ax.plot(batches, values, "--", marker="", color=BROWN, label="t0 + c B")
        ax.axvline(max(found["fitted"], batches[0]), color=GREY, linestyle=":", marker="", label="knee t0 / c")
    left.legend()
    rates = [float(np.max(batches / np.array(run["seconds"]))) for run in runs["updates"]]
    return Picture(
        figure,
        "Two panels against the batch size. Left, the time of an update: flat, then rising in proportion. Right, "
        f"images a second: rising, then flat at about {np.mean(rates):.0f}.",
        f"The time of an update, and the images a second, of {counted(len(rates), 'run')}. t0 = {found['t0']:.1f} ms, "
        f"c = {found['c']:.3f} ms, knee at {found['fitted']:.0f} images, best rate {np.mean(rates):.0f} images/s.",
    )


CLAIM = Claim(
    id="C16",
    statement="Throughput stops growing with the batch size.",
    source="S1",
    lesson="02_one_worker",
    variants=("updates",),
    seeds=5,
    settings={"largest": 2048, "repeats": 10},
    quick={"largest": 512, "repeats": 4},
    run=run,
    judge=judge,
    picture=picture,
    caution="Whatever else your machine does is in the times, and a short run stops at smaller batches.",
    timing_sensitive=True,
)
