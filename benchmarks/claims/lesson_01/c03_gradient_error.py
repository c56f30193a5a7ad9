"""C03: is an average of gradients less accurate than "the" gradient?

The gradient of a batch is compared with that of all training images, over many batches of each size, at weights from
early in training. If averaging made the gradient less accurate, the squared error would not fall as 1 / batch size.
"""

import numpy as np
import torch

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import COLOURS, axes, counted
from benchmarks.instruments.simulated_workers import Recipe, train
from benchmarks.methods.gradients import gradient
from cifar.model import BootcampResNet

SIZES = (32, 64, 128, 256, 512, 1024)  # images in a batch
# Powers of the batch size B. Below FALLS the error falls about as 1 / B; above STAYS it hardly falls.
FALLS, STAYS = -0.8, -0.2


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the mean squared distance of a batch's gradient from the full gradient, for each batch size."""
    split, test = data(settings)
    # The network has no batch normalisation, so that an image's gradient does not depend on the others in its batch.
    recipe = Recipe(net=BootcampResNet, epochs=1, batch_size=128, max_updates=settings["updates"])
    net = train(recipe, (split, test), seed).net
    full = gradient(net, split, torch.arange(len(split)))
    draw = torch.Generator().manual_seed(seed)
    errors = [
        np.mean([
            (gradient(net, split, torch.randint(len(split), (size,), generator=draw)) - full).square().sum().item()
            for _ in range(settings["batches"])
        ])
        for size in SIZES
    ]  # fmt: skip
    return {"sizes": SIZES, "errors": errors, "squared_norm": full.square().sum().item()}


def slopes(runs: Runs) -> list[float]:
    """The power of the batch size with which the squared error changes, one per run."""
    return [float(np.polyfit(np.log(run["sizes"]), np.log(run["errors"]), 1)[0]) for run in runs["gradients"]]


def judge(runs: Runs) -> Verdict:
    """The claim fails where the error falls about as 1 / B, and holds where it hardly falls."""
    found = slopes(runs)
    text = f"the mean squared error changes as batch size to the power {mean_std(found)} (1/B would be -1)"
    if np.mean(found) < FALLS:
        return Verdict("fails", f"{text}: the average over more images is closer to the full gradient, not further.")
    return Verdict("holds" if np.mean(found) > STAYS else "depends", f"{text}.")


def relative(runs: Runs) -> np.ndarray:
    """The squared error divided by the full gradient's squared length: `(runs, batch sizes)`."""
    return np.array([np.array(run["errors"]) / run["squared_norm"] for run in runs["gradients"]])


def picture(runs: Runs) -> Picture:
    """The picture shows the squared error against the batch size, with one line per network and 1/B beside each."""
    figure, ax = axes("images in the batch", "squared error / squared gradient")
    sizes, errors = np.array(runs["gradients"][0]["sizes"]), relative(runs)
    for number, line in enumerate(errors):
        ax.loglog(sizes, line, "o-", color=COLOURS[0], label="" if number else "measured, one line for each network")
        ax.loglog(sizes, line[0] * sizes[0] / sizes, "--", color=COLOURS[1], marker="", label="" if number else "1/B")
    ax.axhline(1, color="0.5", lw=1, label="the error is as long as the gradient")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.xaxis.minorticks_off()
    ax.legend()
    slope, first, last = mean_std(slopes(runs)), *np.median(errors, axis=0)[[0, -1]]
    return Picture(
        figure,
        f"Line plot on logarithmic axes: the error falls along straight lines of slope {slope} beside lines of 1/B.",
        f"Mean squared distance of a batch's gradient from that of all images, over "
        f"{counted(len(errors), 'network')}: slope "
        f"{slope}. In the median it is {first:.2g} times the full gradient's squared length with {sizes[0]} images, "
        f"{last:.2g} with {sizes[-1]}.",
    )


CLAIM = Claim(
    id="C03",
    statement="Averaging the gradients of several workers makes the gradient less accurate.",
    source="S0",
    lesson="01_gradient_descent_and_noise",
    variants=("gradients",),
    seeds=5,
    settings={"images": 20_000, "updates": 100, "batches": 50},
    quick={"images": 4096, "updates": 20, "batches": 4},
    run=run,
    judge=judge,
    picture=picture,
    caution="With few batches of each size the points scatter, and the slope with them.",
)
