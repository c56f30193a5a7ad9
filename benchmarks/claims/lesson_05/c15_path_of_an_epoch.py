"""C15: does each sample's step shrink as the number of workers grows, if the rate stays the same?

From the same weights, 1, 2, 4 and 8 workers train over the same images, with equal per-worker batches and equal rates.
The path of an epoch is the sum of the lengths of its updates, ||w_{t+1} - w_t||. It says how far all images together
have moved the weights. If an update with many workers were as long as with one, the path would fall as 1 / workers. The
path is measured with plain SGD, and with Adam, whose updates do not grow and shrink with the gradient.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import deviation, mean_std
from benchmarks.experiment.plots import axes, counted
from benchmarks.instruments.simulated_workers import Recipe, train

SIZES = (1, 2, 4, 8)  # numbers of workers
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
ABOUT = 0.25  # powers of the number of workers this close to -1 count as 1/K: 2^0.25 is a factor of 1.19 per doubling
CONSTANT = -0.25  # above this power of the number of workers, the path counts as constant


@dataclass
class Path:
    """Records the lengths of a run's updates.

    Pass `look` to a Recipe as `before_step`, and call it once more after the run.
    """

    lengths: list[float] = field(default_factory=list)
    last: Tensor | None = None

    def look(self, net: nn.Module, *_) -> None:
        """Record the distance of the weights from those at the previous call."""
        weights = parameters_to_vector(net.parameters()).detach().clone()
        if self.last is not None:
            self.lengths.append((weights - self.last).norm().item())
        self.last = weights


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the path of an epoch for each number of workers, in units of the weights."""
    return {"sizes": SIZES, "paths": [path(variant, size, seed, settings) for size in SIZES]}


def path(variant: str, size: int, seed: int, settings: Settings) -> float:
    """The path of an epoch of `size` workers, averaged over the epochs."""
    walked = Path()
    recipe = Recipe(
        optimizer=lambda net: OPTIMIZERS[variant](net.parameters(), lr=settings[f"{variant}_rate"]),
        size=size, batch_size=settings["batch_size"], epochs=settings["epochs"], before_step=walked.look,
    )  # fmt: skip
    walked.look(train(recipe, data(settings), seed).net)
    return sum(walked.lengths) / settings["epochs"]


def powers(runs: Runs, variant: str) -> list[float]:
    """The power of the number of workers with which the path of an epoch changes, one value per seed."""
    return [float(np.polyfit(np.log(run["sizes"]), np.log(run["paths"]), 1)[0]) for run in runs[variant]]


def judge(runs: Runs) -> Verdict:
    """The claim holds if SGD's path shrinks at least about as fast as 1/K, and depends if it shrinks more slowly.

    The source S1 makes the claim about SGD, so Adam does not change the verdict.
    """
    sgd, adam = powers(runs, "sgd"), powers(runs, "adam")
    text = (
        f"the path of an epoch changes as the number of workers to the power {mean_std(sgd)} with SGD and "
        f"{mean_std(adam)} with Adam (1/K would be -1)"
    )
    if np.mean(sgd) > CONSTANT:
        return Verdict("fails", f"It does not shrink: {text}.")
    if np.mean(sgd) > -1 + ABOUT:
        return Verdict("depends", f"It shrinks, but more slowly than 1/K: {text}.")
    if np.mean(sgd) > -1 - ABOUT:
        return Verdict("holds", f"It shrinks about as 1/K: {text}.")
    why = "Updates are fewer, and each is shorter too, since averaging takes noise out of the gradient."
    return Verdict("holds", f"It shrinks faster than 1/K: {text}. {why}")


def picture(runs: Runs) -> Picture:
    """The picture shows the path relative to one worker's, against the number of workers, with 1/K."""
    figure, ax = axes("workers", "path of an epoch, relative to one worker")
    for variant, name in (("sgd", "SGD"), ("adam", "Adam")):
        relative = np.array([np.divide(run["paths"], run["paths"][0]) for run in runs[variant]])
        ax.errorbar(SIZES, relative.mean(0), deviation(relative), capsize=3, label=name)
    ax.plot(SIZES, 1 / np.array(SIZES), color="grey", linestyle=":", marker="", label="1/K")
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(SIZES, [str(size) for size in SIZES])
    ax.set_yticks([1 / size for size in SIZES], [f"{1 / size:g}" for size in SIZES])
    ax.minorticks_off()
    ax.legend()
    sgd, adam = mean_std(powers(runs, "sgd")), mean_std(powers(runs, "adam"))
    return Picture(
        figure,
        "Line plot on logarithmic axes: the path of an epoch falls with the number of workers, "
        f"with slope {sgd} for SGD and {adam} for Adam, beside a line of slope -1.",
        f"How far the weights travel in an epoch at a fixed rate: workers to the power {sgd} with SGD, {adam} with "
        f"Adam ({counted(len(runs['sgd']), 'seed')}; bars: one standard deviation).",
    )


CLAIM = Claim(
    id="C15",
    statement="With the rate fixed, each sample's step shrinks as the number of workers grows.",
    source="S1",
    lesson="15_lab_of_lesson_05",
    variants=tuple(OPTIMIZERS),
    seeds=5,
    settings={
        "images": 10_240,
        "epochs": 2,
        "batch_size": 64,
        "sgd_rate": 0.05,
        "adam_rate": 0.001,
        "test_images": 100,
    },
    quick={"images": 1024, "epochs": 1},
    run=run,
    judge=judge,
    picture=picture,
    caution="In the first updates the gradient itself is large, whatever the batch: then the path falls as 1/K.",
)
