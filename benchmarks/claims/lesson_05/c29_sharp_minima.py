"""C29: do large batches find sharp minima?

One worker, and eight with the same per-worker batch and the same rate, train without augmentation until the images are
nearly learnt. The sharpness of the minimum is the largest eigenvalue of the Hessian over a fixed part of the training
images, computed by power iteration (`hessian`). The eight workers are measured after as many epochs as the one worker,
and after as many updates, because with fewer updates the weights have also moved less far. The claim is that of Keskar
et al. 2016 (arXiv:1609.04836), who measured sharpness by the rise of the loss in a small box.
"""

import numpy as np
import torch

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data, first
from benchmarks.experiment.intervals import Difference, mean_std, paired
from benchmarks.experiment.plots import BLUE, BROWN, panels
from benchmarks.instruments.simulated_workers import Recipe, evaluate, train
from benchmarks.methods.hessian import sharpness
from benchmarks.methods.recalibrate_batchnorm import settle

SIZE = 8  # number of workers of the large batch
# For each variant: the number of workers, and the factor of the epochs.
VARIANTS = {"small": (1, 1), "large-epochs": (SIZE, 1), "large-updates": (SIZE, SIZE)}
NAMES = {
    "small": "1 worker", "large-epochs": f"{SIZE} workers,\nequal epochs",
    "large-updates": f"{SIZE} workers,\nequal updates",
}  # fmt: skip


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the largest eigenvalue of the Hessian, the losses (nats) and the accuracies (0 to 1) after training."""
    size, times = VARIANTS[variant]
    split, test = data(settings)
    recipe = Recipe(
        optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=settings["rate"], momentum=0.9),
        size=size, batch_size=settings["batch_size"], epochs=settings["epochs"] * times,
        change=lambda images: images,
    )  # fmt: skip
    history = train(recipe, (split, test), seed)
    net, measured = history.net, first(split, settings["hessian_images"])
    settle(net, measured)
    return {
        "sharpness": sharpness(net, measured, seed, settings["iterations"]),
        "updates": history.last["updates"],
        **evaluate(net, split, "train"),
        **evaluate(net, test, "test"),
    }


def sharper(runs: Runs, variant: str) -> Difference:
    """The logarithm of the ratio of the sharpness of `variant` to that of the small batch."""
    return paired(*(np.log([abs(run["sharpness"]) for run in runs[name]]) for name in (variant, "small")))


def _times(found: Difference) -> str:
    interval = f"95 % interval {np.exp(found.low):.2f} to {np.exp(found.high):.2f}"
    return f"{np.exp(found.mean):.2f} times ({interval if np.isfinite(found.low) else 'one run each, so no interval'})"


def judge(runs: Runs) -> Verdict:
    """The claim holds if the large batch is sharper both at equal epochs and at equal updates.

    If it is sharper in only one of the two cases, the claim depends on how long the large batch trains.
    """
    epochs, updates = sharper(runs, "large-epochs"), sharper(runs, "large-updates")
    signs = [int(np.sign(found.mean)) if found.seen else 0 for found in (epochs, updates)]
    text = (
        f"With {SIZE} times the batch the largest eigenvalue is {_times(epochs)} that of the small batch at equal "
        f"epochs, where the training loss is {_mean(runs, 'large-epochs', 'train_loss'):.3f} against "
        f"{_mean(runs, 'small', 'train_loss'):.3f} nats, and {_times(updates)} at equal updates, where the loss is "
        f"{_mean(runs, 'large-updates', 'train_loss'):.3f}"
    )
    if signs == [0, 0]:
        return Verdict("no difference seen", f"{text}.")
    if signs == [1, 1]:
        return Verdict("holds", f"Sharper at equal epochs and at equal updates. {text}.")
    if max(signs) < 1:
        return Verdict("fails", f"Nowhere sharper. {text}.")
    where = "at equal epochs alone" if signs[0] == 1 else "at equal updates alone"
    return Verdict("depends", f"On how long the large batch trains; it is sharper {where}. {text}.")


def _mean(runs: Runs, variant: str, name: str) -> float:
    return float(np.mean([run[name] for run in runs[variant]]))


def picture(runs: Runs) -> Picture:
    """The picture shows the eigenvalue and test accuracy of each variant: a point for each seed, a line at the mean."""
    figure, (left, right) = panels(("", "largest eigenvalue of the Hessian"), ("", "test accuracy (%)"))
    for position, variant in enumerate(VARIANTS):
        for ax, values in (
            (left, [abs(run["sharpness"]) for run in runs[variant]]),
            (right, [100 * run["test_accuracy"] for run in runs[variant]]),
        ):
            ax.plot([position] * len(values), values, linestyle="", marker="o", color=BLUE, alpha=0.6)
            middle = np.mean(values)
            ax.plot([position - 0.25, position + 0.25], [middle] * 2, linestyle="-", marker="", color=BROWN)
    for ax in (left, right):
        ax.set_xticks(range(len(VARIANTS)), NAMES.values())
        ax.set_xlim(-0.5, len(VARIANTS) - 0.5)
    left.set_yscale("log")  # on a linear axis the smaller eigenvalues could not be told apart
    return Picture(figure, _alt(runs), _caption(runs))


def _alt(runs: Runs) -> str:
    ends = "; ".join(_end(runs, variant) for variant in VARIANTS)
    return f"Two plots with one point for each seed for each of three ends of training. {ends}."


def _end(runs: Runs, variant: str) -> str:
    eigenvalue = mean_std([run["sharpness"] for run in runs[variant]], digits=1)
    accuracy = mean_std([run["test_accuracy"] for run in runs[variant]], 100, 1)
    return f"{NAMES[variant].replace(chr(10), ' ')}: largest eigenvalue {eigenvalue}, test accuracy {accuracy} %"


def _caption(runs: Runs) -> str:
    losses = ", ".join(f"{_mean(runs, variant, 'train_loss'):.3f}" for variant in VARIANTS)
    epochs, updates = (np.exp(sharper(runs, variant).mean) for variant in ("large-epochs", "large-updates"))
    return (
        f"Sharpness where training ends, one point for each seed ({len(runs['small'])}), lines: means. Training "
        f"losses in the same order: {losses} nats. At equal epochs the large batch is {epochs:.2f} times as "
        f"sharp as the small one, at equal updates {updates:.2f} times."
    )


CLAIM = Claim(
    id="C29",
    statement="Large batches find sharp minima.",
    source="S4",
    lesson="15_lab_of_lesson_05",
    variants=tuple(VARIANTS),
    seeds=5,
    settings={
        "images": 2048,
        "epochs": 12,
        "batch_size": 32,
        "rate": 0.01,
        "test_images": 1000,
        "hessian_images": 512,
        "iterations": 50,
    },
    quick={"images": 256, "epochs": 3, "batch_size": 16, "test_images": 100, "hessian_images": 64, "iterations": 10},
    run=run,
    judge=judge,
    picture=picture,
    caution="After a dozen updates the large batch is far from any minimum, and one seed has no interval.",
)
