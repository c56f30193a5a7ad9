"""C11: does a large batch get stuck at a saddle point?

Many walkers start near the saddle of x^2/2 - y^2/2 + y^4/4, at y = 0, and take steps of SGD. A batch's gradient is the
true one plus noise of variance 1/B, like the mean of B images' gradients. The experiment counts the updates until half
of the walkers have left. It does so for each batch size: once with one rate for all sizes, and once with the rate
scaled with the batch.
"""

import math

import numpy as np

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import deviation, mean_std
from benchmarks.experiment.plots import counted, panels

# Batch sizes in images. With the scaled rate they end sooner, because a larger rate would overshoot.
BATCHES = {"one-rate": (1, 4, 16, 64, 256, 1024, 4096), "scaled-rate": (1, 2, 4, 8, 16, 32)}
BASE_RATE = 0.01  # rate for a batch of one image; scaled, it reaches 0.32, which still follows the gradient flow
AWAY = 0.5  # |y| from which a walker has left: half-way to the minima at y = +1 and -1
LIMIT = 10_000  # updates after which a walker that is still there counts as stuck
SAME = 1.2  # a number of updates that grows by a smaller factor over the batch sizes does not count as grown


def slope(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The true gradient of x^2/2 - y^2/2 + y^4/4."""
    return x, y**3 - y


def rate_for(variant: str, batch: int) -> float:
    """The learning rate that a variant uses with a batch size."""
    return BASE_RATE * batch if variant == "scaled-rate" else BASE_RATE


def escape(rate: float, batch: int, walkers: int, draw: np.random.Generator) -> float:
    """The updates until half of the walkers have left; infinite if fewer leave within LIMIT updates.

    The walkers start at x = 1 and y = 0, from where the true gradient leads to the saddle.
    """
    x, y, left = np.ones(walkers), np.zeros(walkers), np.zeros(walkers, bool)
    for update in range(1, LIMIT + 1):
        noise = draw.standard_normal((2, walkers)) / math.sqrt(batch)
        along_x, along_y = slope(x, y)
        x, y = x - rate * (along_x + noise[0]), y - rate * (along_y + noise[1])
        left |= np.abs(y) > AWAY
        if left.mean() >= 0.5:
            return float(update)
    return math.inf


def theory(rate: float, batch: np.ndarray) -> np.ndarray:
    """The updates until half of the walkers have left, if the slope is -y and no walker returns.

    After t updates y is then normally distributed with the variance rate^2 / B * (g^(2t) - 1) / (g^2 - 1), where
    g = 1 + rate.
    """
    g = 1 + rate
    half = AWAY / 0.6745  # half of a normal distribution lies within 0.6745 deviations
    return np.log(1 + half**2 * batch * (g**2 - 1) / rate**2) / (2 * np.log(g))


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the median updates to leave the saddle, for each batch size; None where half of the walkers stay."""
    draw = np.random.default_rng(seed)
    batches = BATCHES[variant]
    found = [escape(rate_for(variant, batch), batch, settings["walkers"], draw) for batch in batches]
    return {"batches": batches, "updates": [value if math.isfinite(value) else None for value in found]}


def updates(runs: Runs, variant: str) -> np.ndarray:
    """The median updates, `(runs, batch sizes)`; infinite where half of the walkers stayed."""
    return np.array([[math.inf if value is None else value for value in run["updates"]] for run in runs[variant]])


def growth(runs: Runs, variant: str) -> np.ndarray:
    """The updates of the largest batch divided by those of the smallest one, for each run."""
    found = updates(runs, variant)
    return found[:, -1] / found[:, 0]


def judge(runs: Runs) -> Verdict:
    """The claim depends on the rate where the updates grow with the batch at one rate, but not with the scaled rate."""
    stuck = sum(int(np.isinf(updates(runs, variant)).sum()) for variant in runs)
    one, scaled = (growth(runs, variant) for variant in ("one-rate", "scaled-rate"))
    if stuck:
        return Verdict("holds", f"at {stuck} of the measured points half of the walkers never left the saddle.")
    first, last = (runs["one-rate"][0]["batches"][i] for i in (0, -1))
    factor, width = last / first, runs["scaled-rate"][0]["batches"][-1] / runs["scaled-rate"][0]["batches"][0]
    text = (
        f"no batch stayed on the saddle. At one rate, {factor:.0f} times the batch takes {mean_std(one)} times the "
        f"updates and {mean_std(one * factor, digits=0)} times the images; with the rate scaled, {width:.0f} times the "
        f"batch takes {mean_std(scaled)} times the updates and {mean_std(scaled * width)} times the images"
    )
    if one.mean() < SAME:
        return Verdict("fails", f"{text}: leaving takes no longer with a large batch.")
    if scaled.mean() < SAME:
        return Verdict("depends", f"{text}: it depends on the rate, which must grow with the batch.")
    return Verdict("holds", f"{text}: leaving takes longer with a large batch.")


def picture(runs: Runs) -> Picture:
    """The picture shows updates and images to leave the saddle against batch size, for both choices of the rate."""
    figure, (left, right) = panels(
        ("batch size (images)", "updates to leave the saddle"), ("batch size (images)", "images to leave the saddle")
    )
    for variant, name in (("one-rate", "one rate"), ("scaled-rate", "rate scaled with the batch")):
        batches = np.array(runs[variant][0]["batches"])
        found = updates(runs, variant)
        for ax, values in ((left, found), (right, found * batches)):
            values = np.where(np.isfinite(values), values, np.nan)  # an infinite time cannot be drawn
            ax.errorbar(batches, values.mean(axis=0), deviation(values), capsize=3, label=name)
    batches = np.array(runs["one-rate"][0]["batches"])
    left.plot(batches, theory(BASE_RATE, batches), label="theory, one rate", marker="")
    for ax in (left, right):
        ax.loglog()
        ax.set_xticks(batches, [str(batch) for batch in batches])
        ax.minorticks_off()
    left.legend()
    one, scaled = (f"{np.median(growth(runs, variant)):.2f}" for variant in ("one-rate", "scaled-rate"))
    return Picture(
        figure,
        f"Two line plots on logarithmic axes. Left: over the batch sizes, updates to leave change by a factor {one} "
        f"at one rate and {scaled} with the rate scaled. Right: the images, which rise steeply at one rate.",
        f"Time to leave the saddle for half of the walkers, mean and deviation over "
        f"{counted(len(runs['one-rate']), 'run')}. "
        f"From the smallest to the largest batch the updates change by a factor {one} (median) at one rate and "
        f"{scaled} with the rate scaled.",
    )


CLAIM = Claim(
    id="C11",
    statement="A large batch gets stuck at saddle points.",
    source="S1",
    lesson="11_lab_of_lesson_01",
    variants=("one-rate", "scaled-rate"),
    seeds=5,
    settings={"walkers": 20_000},
    quick={"walkers": 2000},
    run=run,
    judge=judge,
    picture=picture,
    caution="With few walkers the median moves by a few updates.",
)
