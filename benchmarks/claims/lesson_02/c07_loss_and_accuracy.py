"""C07: does a lower loss mean a higher accuracy?

The runs differ in length, augmentation, weight decay and label smoothing. Each is measured by plain cross-entropy and
by accuracy, on the images of both splits without augmentation. If the claim holds, a ranking by loss is a ranking by
accuracy. No recipe may then have both a higher loss and a higher accuracy than another, beyond the noise.
"""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data, first
from benchmarks.experiment.intervals import difference, mean_std
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments.simulated_workers import Recipe, evaluate, train
from benchmarks.methods.augmentations import unchanged
from cifar.data import augment

VARIANTS = ("short", "plain", "distorted", "decayed", "smoothed")
PAIRS = (("train_loss", "train_accuracy"), ("test_loss", "test_accuracy"), ("train_loss", "test_accuracy"))
GLANCE = 100  # test images after each epoch: few, because only the evaluation after the last epoch counts


def decayed(net: nn.Module) -> torch.optim.Optimizer:
    """Adam that also shrinks the weights in each update, by the factor 1 - rate * decay."""
    return torch.optim.AdamW(net.parameters(), lr=0.001, weight_decay=1.0)


def recipe(variant: str, settings: Settings) -> Recipe:
    """The recipe of a variant. `plain` is the basis, and each other variant makes one change to it."""
    plain = Recipe(batch_size=settings["batch"], epochs=settings["epochs"], change=unchanged)
    changed = {
        "short": {"epochs": settings["short"]},
        "plain": {},
        "distorted": {"change": augment},
        "decayed": {"optimizer": decayed},
        "smoothed": {"loss": partial(F.cross_entropy, label_smoothing=0.2)},
    }
    return replace(plain, **changed[variant])


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the loss (nats) and accuracy (0 to 1) on both splits after training, in the same way for all variants."""
    train_part, test_part = data(settings)
    net = train(recipe(variant, settings), (train_part, first(test_part, GLANCE)), seed).net
    return evaluate(net, train_part, "train") | evaluate(net, test_part, "test")


def rank_correlations(runs: Runs, loss: str, accuracy: str) -> list[float]:
    """Spearman's correlation of low loss with high accuracy over the variants, for each seed.

    A correlation of 1 means that both give the same ranking.
    """
    from scipy.stats import spearmanr

    by_seed = zip(*runs.values(), strict=False)
    return [
        float(spearmanr([-run[loss] for run in each], [run[accuracy] for run in each]).statistic) for each in by_seed
    ]


def pairs(runs: Runs, loss: str, accuracy: str, agreeing: bool) -> list[tuple[str, str]]:
    """Pairs of variants that differ in loss and in accuracy beyond the noise. The variant of lower loss comes first.

    With `agreeing` these are the pairs in which the first variant has the higher accuracy, otherwise those in which it
    has the lower accuracy.
    """
    found = []
    for pair in combinations(runs, 2):
        losses, accuracies = (
            difference(*([run[name] for run in runs[variant]] for variant in pair)) for name in (loss, accuracy)
        )
        if losses.seen and accuracies.seen and (losses.mean * accuracies.mean < 0) == agreeing:
            found.append(pair if losses.mean < 0 else pair[::-1])
    return found


def judge(runs: Runs) -> Verdict:
    """Each pair of variants whose accuracies rank against their losses, beyond the noise, contradicts the claim.

    If pairs contradict it only from training loss to test accuracy, the claim depends on the split.
    """
    if min(map(len, runs.values())) < 2:
        return Verdict("no difference seen", f"one run per variant gives no interval; {_correlations(runs)}.")
    train_train, test_test, train_test = (pairs(runs, *names, agreeing=False) for names in PAIRS)
    text = _correlations(runs)
    if train_train or test_test:
        low, high = (train_train or test_test)[0]
        split = "training" if train_train else "test"
        return Verdict(
            "fails",
            f"not even on one split: on the {split} images, {low} has a lower loss than {high} and a lower accuracy; "
            f"{_wrong(train_test)}; {text}.",
        )
    if train_test:
        return Verdict("depends", f"on the split: on the same images it holds, but {_wrong(train_test)}; {text}.")
    if not pairs(runs, *PAIRS[2], agreeing=True):
        return Verdict("no difference seen", f"no two recipes differ in both beyond the noise; {text}.")
    return Verdict("holds", f"no pair of runs contradicts it on either split or across; {text}.")


def _wrong(wrong: list[tuple[str, str]]) -> str:
    count = len(VARIANTS) * (len(VARIANTS) - 1) // 2
    examples = f" ({', '.join(f'{low} against {high}' for low, high in wrong)})" if wrong else ""
    return f"by training loss, {len(wrong)} of {count} pairs have the wrong one ahead in test accuracy{examples}"


def _correlations(runs: Runs) -> str:
    train_train, test_test, train_test = (mean_std(rank_correlations(runs, *pair)) for pair in PAIRS)
    return (
        f"rank correlation of low loss with high accuracy: {train_train} within the training images, {test_test} "
        f"within the test images, {train_test} from training loss to test accuracy"
    )


def picture(runs: Runs) -> Picture:
    """The picture shows accuracy against loss, within each split and across them, with one marker per variant."""
    labels = (
        ("training loss (nats)", "training accuracy (%)"),
        ("test loss (nats)", "test accuracy (%)"),
        ("training loss (nats)", "test accuracy (%)"),
    )
    figure, axes = panels(*labels, size=(9.6, 3.6))
    for ax, (loss, accuracy) in zip(axes, PAIRS, strict=True):
        for variant, found in runs.items():
            ax.plot([run[loss] for run in found], [100 * run[accuracy] for run in found], linestyle="", label=variant)
        ax.set_title(f"rank correlation {np.mean(rank_correlations(runs, loss, accuracy)):.2f}", fontsize=10)
    axes[2].legend(fontsize=8)
    return Picture(
        figure,
        "Three scatter plots of accuracy against loss, one point for each run and one marker for each recipe: "
        "training images, test "
        "images, and test accuracy against training loss. Where lower loss means higher accuracy, points fall to the "
        f"right. {_correlations(runs).capitalize()}.",
        f"Five recipes, {counted(len(runs['plain']), 'run')} each. {_correlations(runs).capitalize()}.",
    )


CLAIM = Claim(
    id="C07",
    statement="A lower loss means a higher accuracy.",
    source="S0",
    lesson="12_lab_of_lesson_02",
    variants=VARIANTS,
    seeds=5,
    settings={"images": 4000, "epochs": 12, "short": 4, "batch": 128},
    quick={"images": 1024, "epochs": 4, "short": 2, "test_images": 2000},
    run=run,
    judge=judge,
    picture=picture,
    caution="So few images and epochs leave little time to learn images by heart, and with one seed nobody can tell "
    "a difference from noise.",
)
