"""C03: is an average of gradients less accurate than "the" gradient?

The gradient of a batch is compared with that of all training images, over many batches of each size, at weights from
early in training. If averaging cost accuracy the squared error would not fall as 1 / batch size.
"""

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.cifar10 import data
from benchmarks.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.spread import mean_std
from benchmarks.training import Recipe, train
from cifar import workers
from cifar.data import Split, normalise
from cifar.model import BootcampResNet
from benchmarks.plots import axes

SIZES = (32, 64, 128, 256, 512, 1024)


def gradient(net: nn.Module, split: Split, indices: Tensor) -> Tensor:
    """Gradient of the mean loss over the images at `indices`, one float32 vector."""
    total = 0
    for part in indices.split(512):
        images, labels = split.batch(part)
        with workers.autocast(images.device):
            logits = net(normalise(images)).float()
        loss = nn.functional.cross_entropy(logits, labels, reduction="sum") / len(indices)
        parts = torch.autograd.grad(loss, list(net.parameters()))
        total = total + torch.cat([part.reshape(-1) for part in parts])
    return total


def run(arm: str, seed: int, settings: Settings) -> Values:
    """Mean squared distance to the full gradient for each batch size."""
    split, test = data(settings)
    # Without batch normalisation, so that an image's gradient does not depend on the others in its batch.
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
    """The power of the batch size with which the squared error changes, by run."""
    return [float(np.polyfit(np.log(run["sizes"]), np.log(run["errors"]), 1)[0]) for run in runs["gradients"]]


def judge(runs: Runs) -> Verdict:
    """Refuted where the error falls about as 1 / B."""
    found = slopes(runs)
    text = f"the mean squared error changes as batch size to the power {mean_std(found)} (1/B would be -1)"
    if np.mean(found) < -0.8:
        return Verdict("fails", f"{text}: the average over more images is closer to the full gradient, not further.")
    return Verdict("holds" if np.mean(found) > -0.2 else "depends", f"{text}.")


def picture(runs: Runs) -> Picture:
    """Squared error against batch size, a line a run, with 1/B beside them."""
    figure, ax = axes("images in the batch", "mean squared error of the gradient")
    for number, run in enumerate(runs["gradients"]):
        ax.loglog(run["sizes"], run["errors"], "o-", label="measured" if number == 0 else None)
    first = runs["gradients"][0]
    ax.loglog(first["sizes"], first["errors"][0] * first["sizes"][0] / np.array(first["sizes"]), "--", label="1/B")
    ax.legend()
    slope = mean_std(slopes(runs))
    return Picture(
        figure,
        f"Line plot on logarithmic axes: the error falls along a straight line of slope {slope} beside the line 1/B.",
        f"Squared distance from the gradient of all images, over {len(runs['gradients'])} networks: slope {slope}.",
    )


CLAIM = Claim(
    id="C03",
    statement="An average of gradients is less accurate than the gradient itself.",
    source="S0",
    lesson="01_gradient_descent_and_noise",
    arms=("gradients",),
    seeds=5,
    settings={"images": 20_000, "updates": 100, "batches": 50},
    quick={"images": 4096, "updates": 20, "batches": 6},
    run=run,
    judge=judge,
    picture=picture,
    caution="With few batches of each size the points scatter, and the slope with them.",
)
