"""Trains with one learning rate after the other, as eight workers would, and draws what a search has found.

accuracy = accuracy_with(0.02, warmup_factor)
show_search({0.01: 0.46, 0.02: accuracy})
"""

from collections.abc import Callable

import torch

from benchmarks.experiment.dataset import data, first, subset
from benchmarks.experiment.plots import GREY
from benchmarks.instruments.simulated_workers import Recipe, evaluate, train
from lessons.cells.display.figures import axes, show

WORKERS, BATCH, EPOCHS = 8, 32, 3
IMAGES, VALIDATION = 3072, 2048
BASE = 0.01  # the base rate of SGD with momentum
SCALED = WORKERS * BASE  # what the linear rule says for eight workers
MOST = 8  # trainings in a search


def accuracy_with(
    rate: float, warmup_factor: Callable[[int, int, int], float], seed: int = 0, device: str = "auto"
) -> float:
    """Train with `rate` at the end of the warmup. Returns the validation accuracy (0 to 1).

    The warmup is `warmup_factor` over the first quarter of the updates. Then the rate falls to zero in a straight line.
    """

    def factor(update: int, updates_an_epoch: int) -> float:
        end = EPOCHS * updates_an_epoch
        fall = (end - update) / (end - end // 4)
        return min(warmup_factor(update, end // 4, WORKERS), WORKERS * fall)

    images, _ = data({"images": IMAGES + VALIDATION, "device": device})
    validation = subset(images, torch.arange(IMAGES, IMAGES + VALIDATION))
    recipe = Recipe(
        optimizer=lambda net: torch.optim.SGD(net.parameters(), lr=rate / WORKERS, momentum=0.9),
        size=WORKERS, batch_size=BATCH, epochs=EPOCHS, factor=factor,
    )  # fmt: skip
    # Only the end of the training counts. So the test after each epoch is made as short as it can be: on one image.
    history = train(recipe, (first(images, IMAGES), first(validation, 1)), seed)
    return evaluate(history.net, validation, "validation")["validation_accuracy"]


def show_search(tried: dict[float, float]) -> None:
    """Draw the validation accuracy (0 to 1) of each rate, with the base rate and the scaled rate beside them."""
    figure, ax = axes("rate at the end of the warmup", "validation accuracy (%)")
    rates, best = sorted(tried), max(tried, key=tried.get)
    ax.semilogx(rates, [100 * tried[rate] for rate in rates], base=2)
    for name, rate in (("base rate", BASE), ("scaled rate", SCALED)):
        ax.axvline(rate, color=GREY, linestyle="dotted")
        ax.annotate(name, (rate, 1.01), xycoords=("data", "axes fraction"), ha="center")
    ticks = sorted({*rates, SCALED})
    ax.set_xticks(ticks, [f"{rate:g}" for rate in ticks])
    ax.minorticks_off()
    show(
        figure,
        f"The accuracy of {len(tried)} rates. The highest is at {best:g}. Dotted lines mark base rate and scaled rate.",
        f"The best of {len(tried)} rates is {best:g}. One training for each, so near neighbours may be equally good.",
    )
