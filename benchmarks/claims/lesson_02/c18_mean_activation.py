"""C18: can one back-propagate the mean activation of a batch instead of each image's?

The activations of a batch are averaged before each layer, and one error signal is sent back through these means, as if
the batch were one image. The cosine compares the resulting gradient with the true mean gradient. Theory covers a
squared error and a network without activation functions. There the biases' gradient is exact. A weight's gradient is
the mean of error times input, and it loses their covariance. Finally, both gradients train a network.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import deviation, mean_std
from benchmarks.experiment.plots import BLUE, YELLOW, counted, panels
from benchmarks.instruments.simulated_workers import evaluate
from cifar.data import Split, normalise, shuffle

SAME = 0.99  # with a cosine of at least this, a direction counts as the true one
Loss = Callable[[Tensor, Tensor], Tensor]  # (outputs (B, 10), one-hot labels (B, 10)) -> mean loss


def squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half of the squared distance, averaged over the images."""
    return (outputs - targets).square().sum(1).mean() / 2


def perceptron(between: Callable[[], nn.Module]) -> nn.Sequential:
    """Three linear layers with the module `between` after each of the first two."""
    layers = [nn.Flatten(), nn.Linear(3072, 128), between(), nn.Linear(128, 128), between(), nn.Linear(128, 10)]
    return nn.Sequential(*layers)


def convolutional() -> nn.Sequential:
    """Two convolutions with ReLU and max-pooling, and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 10),
    )  # fmt: skip


VARIANTS: dict[str, tuple[Callable[[], nn.Sequential], Loss]] = {
    "linear squared": (lambda: perceptron(nn.Identity), squared),
    "linear entropy": (lambda: perceptron(nn.Identity), F.cross_entropy),
    "relu squared": (lambda: perceptron(nn.ReLU), squared),
    "relu entropy": (lambda: perceptron(nn.ReLU), F.cross_entropy),
    "convolution entropy": (convolutional, F.cross_entropy),
}


def true_gradient(net: nn.Sequential, loss: Loss, images: Tensor, targets: Tensor) -> list[Tensor]:
    """The gradient of the mean loss, one tensor per parameter."""
    return list(torch.autograd.grad(loss(net(images), targets), list(net.parameters())))


def mean_gradient(net: nn.Sequential, loss: Loss, images: Tensor, targets: Tensor) -> list[Tensor]:
    """The gradient that results if each layer's inputs, and the targets, are replaced by their mean over the batch.

    The result has one tensor per parameter.
    """
    means = mean_inputs(net, images)
    output = means.pop().requires_grad_()
    (error,) = torch.autograd.grad(loss(output, targets.mean(0, keepdim=True)), output)
    found = []
    for layer, mean in zip(reversed(net), reversed(means), strict=True):
        own = list(layer.parameters())
        mean.requires_grad_()
        error, *gradients = torch.autograd.grad(layer(mean), [mean, *own], error)
        found = gradients + found
    return found


@torch.no_grad()
def mean_inputs(net: nn.Sequential, images: Tensor) -> list[Tensor]:
    """The mean input of each layer, `(1, ...)`, and the network's mean output."""
    means = [images.mean(0, keepdim=True)]
    for layer in net:
        images = layer(images)
        means.append(images.mean(0, keepdim=True))
    return means


def cosine(a: list[Tensor], b: list[Tensor]) -> float:
    """The cosine of the angle between two gradients. Each list's tensors form one vector."""
    a, b = (torch.cat([part.flatten() for part in parts]).double() for parts in (a, b))
    return F.cosine_similarity(a, b, dim=0).item()


def _cosines(net: nn.Sequential, loss: Loss, split: Split, size: int, settings: Settings, draw) -> list[float]:
    """The cosines of the weights and of the biases, averaged over batches of `size` images."""
    found = []
    for _ in range(settings["batches"]):
        images, targets = _batch(split, torch.randint(len(split), (size,), generator=draw))
        true, mean = (gradient(net, loss, images, targets) for gradient in (true_gradient, mean_gradient))
        found.append([cosine(true[0::2], mean[0::2]), cosine(true[1::2], mean[1::2])])
    return np.mean(found, axis=0).tolist()


def _batch(split: Split, indices: Tensor) -> tuple[Tensor, Tensor]:
    images, labels = split.batch(indices)
    return normalise(images).contiguous(), F.one_hot(labels, 10).float()


def trained(variant: str, gradient: Callable, split: Split, seed: int, settings: Settings) -> nn.Sequential:
    """A network after one pass through the images. Each update uses the gradient that `gradient` returns."""
    build, loss = VARIANTS[variant]
    torch.manual_seed(seed)
    net = build().to(split.images.device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    for indices in shuffle(len(split), seed, 0).split(64):
        found = gradient(net, loss, *_batch(split, indices))
        for weight, part in zip(net.parameters(), found, strict=True):
            weight.grad = part
        optimizer.step()
    return net


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure cosines by batch size at weights from early in training, and test accuracies (0 to 1).

    The accuracies are those after training with the true gradient and with that of the mean activations.
    """
    split, test = data(settings)
    net = trained(variant, true_gradient, split, seed, settings)
    other = trained(variant, mean_gradient, split, seed, settings)
    draw = torch.Generator().manual_seed(seed)
    sizes = [4**power for power in range(int(math.log(settings["largest"], 4)) + 1)]
    found = [_cosines(net, VARIANTS[variant][1], split, size, settings, draw) for size in sizes]
    weights, biases = zip(*found, strict=True)
    return {
        "sizes": sizes, "weights": weights, "biases": biases,
        "accuracy": evaluate(net, test, "test")["test_accuracy"],
        "accuracy_with_means": evaluate(other, test, "test")["test_accuracy"],
    }  # fmt: skip


def _largest(runs: Runs, variant: str, name: str) -> list[float]:
    """The cosines of the largest batch, one per run."""
    return [run[name][-1] for run in runs[variant]]


def judge(runs: Runs) -> Verdict:
    """The claim holds if the weights' gradients of all networks have the true direction.

    It depends on the activation function if only those of the linear networks do.
    """
    weights = {variant: float(np.mean(_largest(runs, variant, "weights"))) for variant in runs}
    linear = all(weights[variant] >= SAME for variant in runs if variant.startswith("linear"))
    listed = ", ".join(f"{variant} {mean_std(_largest(runs, variant, 'weights'))}" for variant in runs)
    biases = ", ".join(f"{variant} {mean_std(_largest(runs, variant, 'biases'))}" for variant in runs)
    accuracy, lost = (
        mean_std([run[name] for run in runs["relu entropy"]], 100, 1) for name in ("accuracy", "accuracy_with_means")
    )
    text = (
        f"cosine to the true gradient with {runs['relu entropy'][0]['sizes'][-1]} images: {listed} for the weights; "
        f"{biases} for the biases. The ReLU network learns to {accuracy} % with the one, {lost} % with the other."
    )
    if min(weights.values()) >= SAME:
        return Verdict("holds", text)
    if linear:
        return Verdict("depends", f"on the activation function, linear networks lose nothing: {text}")
    return Verdict("fails", text)


def picture(runs: Runs) -> Picture:
    """The picture shows the cosines of weights and biases against the batch size, and the accuracies."""
    labels = (
        ("images in the batch", "cosine, weights' gradient"),
        ("images in the batch", "cosine, biases' gradient"),
        ("test accuracy (%)", ""),
    )
    figure, (left, middle, right) = panels(*labels, size=(10.5, 3.8))
    for ax, name in ((left, "weights"), (middle, "biases")):
        for variant, found in runs.items():
            values = np.array([run[name] for run in found])
            ax.errorbar(found[0]["sizes"], values.mean(0), deviation(values), capsize=3, label=variant)
        ax.set_xscale("log", base=2)
        ax.set_ylim(-0.05, 1.05)
    left.legend(fontsize=7)
    places = np.arange(len(runs))
    for shift, name, colour, label in (
        (-0.2, "accuracy", BLUE, "true"),
        (0.2, "accuracy_with_means", YELLOW, "means"),
    ):
        values = [[100 * run[name] for run in found] for found in runs.values()]
        spread = [deviation(each) for each in values]
        right.barh(places + shift, [np.mean(each) for each in values], 0.4, xerr=spread, color=colour, label=label)
    right.set_yticks(places, list(runs), fontsize=8)
    right.invert_yaxis()
    right.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    listed, biases = (
        ", ".join(f"{variant} {mean_std(_largest(runs, variant, of))}" for variant in runs)
        for of in ("weights", "biases")
    )
    return Picture(
        figure,
        "Left and middle, the cosine against the batch size, one line for each network: it is 1 at one image "
        "and lower with "
        "more, but for the biases of the linear network with squared error. Right, bars of test accuracy after "
        f"training with either gradient. Biases, largest batch: {biases}.",
        f"Cosine between the gradient of mean activations and the true one, "
        f"{counted(len(runs['relu entropy']), 'run')} a "
        f"network. Weights, largest batch: {listed}.",
    )


CLAIM = Claim(
    id="C18",
    statement="Back-propagating the mean activation of a batch gives the mean gradient.",
    source="S1",
    lesson="12_lab_of_lesson_02",
    variants=tuple(VARIANTS),
    seeds=5,
    settings={"images": 10_000, "batches": 20, "largest": 256},
    quick={"images": 2048, "batches": 4, "test_images": 1000},
    run=run,
    judge=judge,
    picture=picture,
    caution="A short run looks at weights from the very beginning of training.",
)
