"""C12: where do gradient descent and SGD end? The first uses all data for each step, the second only a part.

A linear model with two weights predicts an image's brightness in the middle from that of its left and its right edge.
Gradient descent uses all images in each step. SGD uses B images, drawn anew for each step. For each rate and batch
size, many runs go side by side. Their distance from the minimum, once it no longer shrinks, is compared with theory,
which says that it grows as sqrt(rate / B).
"""

import itertools

import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import deviation, mean_std
from benchmarks.experiment.plots import panels

RATES, BATCHES = (0.05, 0.1, 0.2), (8, 32, 128)  # every rate is combined with every batch size
START = (-1.0, 0.6)  # weights before the first step
SHOWN, SHOWN_RATE, SHOWN_BATCH = 150, 0.1, 8  # the paths in the figure: their updates, their rate, SGD's batch size
# Both times are in units of 1 / (rate x smallest curvature) updates.
SETTLED = 3  # for SGD from the minimum: the scatter no longer grows after this time
ARRIVED = 10  # for gradient descent from START: it has reached the minimum after this time
REST = 1e-3  # a smaller distance counts as the minimum itself
HALF = (0.4, 0.6)  # powers of rate / B in this range count as the square root, which is 0.5


def standard(values: Tensor) -> Tensor:
    """Shift and scale the values to mean 0 and deviation 1."""
    return (values - values.mean()) / values.std(correction=0)


def brightness(settings: Settings) -> tuple[Tensor, Tensor]:
    """The inputs `(N, 2)` and targets `(N,)` of the fit.

    The inputs are the brightness of the 8 columns at the left and of the 8 at the right. The targets are the brightness
    of the 16 columns between.
    """
    columns = data(settings)[0].images.sum(dim=(1, 2), dtype=torch.int64).double()  # (N, 32)
    left, middle, right = (standard(part.sum(1)) for part in columns.split([8, 16, 8], dim=1))
    return torch.stack([left, right], dim=1), middle


def loss_gradient(weights: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
    """The gradient of half the mean squared error, `(..., 2)`.

    The weights are `(..., 2)`, the inputs `(..., B, 2)`, and the targets `(..., B)`.
    """
    errors = (inputs * weights.unsqueeze(-2)).sum(-1) - targets
    return (errors.unsqueeze(-1) * inputs).mean(-2)


def descend(start: Tensor, inputs: Tensor, targets: Tensor, rate: float, updates: int) -> Tensor:
    """The weights of gradient descent before each update and after the last one, `(updates + 1, 2)`."""
    path = [start]
    for _ in range(updates):
        path.append(path[-1] - rate * loss_gradient(path[-1], inputs, targets))
    return torch.stack(path)


def sgd(start: Tensor, inputs: Tensor, targets: Tensor, rate: float, batch: int, updates: int, draw) -> Tensor:
    """The weights of SGD before each update and after the last one, `(updates + 1, runs, 2)`.

    The runs go side by side from `start`, `(runs, 2)`. Each run draws `batch` images for each update.
    """
    path = [start]
    for _ in range(updates):
        drawn = torch.randint(len(targets), (len(start), batch), generator=draw).to(inputs.device)
        path.append(path[-1] - rate * loss_gradient(path[-1], inputs[drawn], targets[drawn]))
    return torch.stack(path)


def surface(inputs: Tensor, targets: Tensor) -> dict:
    """The loss's minimum `(2,)`, its curvature `(2, 2)`, and the covariance `(2, 2)` of an image's gradient there."""
    curvature = inputs.T @ inputs / len(targets)
    minimum = torch.linalg.solve(curvature, inputs.T @ targets / len(targets))
    gradients = (inputs @ minimum - targets).unsqueeze(1) * inputs
    covariance = gradients.T @ gradients / len(targets)
    return {"minimum": minimum, "curvature": curvature, "covariance": covariance}


def expected(curvature, covariance) -> float:
    """The factor c in distance = c sqrt(rate / B), which theory gives for small rates.

    The distance from the minimum is the root of its mean square, the trace of the scatter S. S solves the equation
    curvature S + S curvature = rate / B covariance (Mandt et al. 2017, arXiv:1704.04289).
    """
    from scipy.linalg import solve_continuous_lyapunov

    return float(np.sqrt(np.trace(solve_continuous_lyapunov(np.array(curvature), np.array(covariance)))))


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure a path to draw, and the distance from the minimum once it no longer changes."""
    inputs, targets = brightness(settings)
    found = surface(inputs, targets)
    start = torch.tensor(START).to(inputs)
    draw = torch.Generator().manual_seed(seed)
    if variant == "gradient-descent":
        slowest = torch.linalg.eigvalsh(found["curvature"])[0].item()
        path = descend(start, inputs, targets, SHOWN_RATE, round(ARRIVED / SHOWN_RATE / slowest))
        values = {"distance": (path[-1] - found["minimum"]).norm().item(), "images": len(targets)}
    else:
        path = sgd(start.unsqueeze(0), inputs, targets, SHOWN_RATE, SHOWN_BATCH, SHOWN, draw)[:, 0]
        values = {"points": scatter(inputs, targets, found, settings, draw)}
    return values | {"path": path[: SHOWN + 1].tolist()} | {name: tensor.tolist() for name, tensor in found.items()}


def scatter(inputs: Tensor, targets: Tensor, found: dict, settings: Settings, draw) -> list[dict]:
    """The root mean squared distance of SGD from the minimum, for each rate and batch size."""
    slowest = torch.linalg.eigvalsh(found["curvature"])[0].item()
    start = found["minimum"].expand(settings["runs"], 2)
    points = []
    for rate, batch in itertools.product(RATES, BATCHES):
        first = round(SETTLED / rate / slowest)
        path = sgd(start, inputs, targets, rate, batch, first + settings["updates"], draw)
        squares = (path[first:] - found["minimum"]).square().sum(-1)
        points.append({"rate": rate, "batch": batch, "distance": squares.mean().sqrt().item()})
    return points


def powers(run: Values) -> tuple[float, float]:
    """The powers of the rate and of 1 / B with which SGD's distance from the minimum changes, in one fit."""
    logs = np.log([[point["rate"], 1 / point["batch"], point["distance"]] for point in run["points"]])
    known = np.column_stack([np.ones(len(logs)), logs[:, :2]])
    _, of_rate, of_batch = np.linalg.lstsq(known, logs[:, 2], rcond=None)[0]
    return float(of_rate), float(of_batch)


def told(runs: Runs) -> str:
    """A text with both powers, over the seeds."""
    of_rate, of_batch = zip(*map(powers, runs["sgd"]), strict=True)
    return f"as the rate to the power {mean_std(of_rate)} and as 1 / B to the power {mean_std(of_batch)}"


def judge(runs: Runs) -> Verdict:
    """The claim holds if gradient descent comes to rest at the minimum and SGD scatters as the root of rate / B."""
    found = np.mean([powers(run) for run in runs["sgd"]], axis=0)
    rest = max(run["distance"] for run in runs["gradient-descent"])
    text = (
        f"gradient descent ends {rest:.1g} from the minimum; SGD stays at a distance that grows {told(runs)} (the root "
        "would be 0.5 for both)"
    )
    if rest > REST:
        return Verdict("fails", f"{text}: gradient descent did not come to rest at the minimum.")
    if all(HALF[0] < power < HALF[1] for power in found):
        return Verdict("holds", f"{text}.")
    return Verdict("fails" if max(found) < 0.1 else "depends", f"{text}.")


def picture(runs: Runs) -> Picture:
    """The picture shows both paths on the contours of the loss, and SGD's distance against rate / B."""
    figure, (left, right) = panels(
        ("weight of the left edge", "weight of the right edge"),
        ("rate / batch size (1 / images)", "distance from the minimum (root mean square)"),
        size=(9.0, 4.0),
    )
    _paths(left, runs)
    _distances(right, runs)
    end, images = (runs["gradient-descent"][0][name] for name in ("distance", "images"))
    grows = f"grows {told(runs)}"
    return Picture(
        figure,
        f"Left: on elliptic contours gradient descent curves smoothly into the minimum; SGD comes there on a jagged "
        "path and wanders about it. Right: SGD's distance against rate over batch size on logarithmic axes, points of "
        f"three rates: it {grows}.",
        f"Left: the first {SHOWN} updates of both with rate {SHOWN_RATE}; for these gradient descent used "
        f"{SHOWN * images:,} images, SGD {SHOWN * SHOWN_BATCH:,}. Right: the distance at which SGD stays; it "
        f"{grows}; the line is what theory gives for small rates. Gradient descent ends {end:.1g} from the minimum.",
    )


def _paths(ax, runs: Runs) -> None:
    first = runs["gradient-descent"][0]
    minimum, curvature = np.array(first["minimum"]), np.array(first["curvature"])
    for variant, name, style in (("sgd", "SGD", "s-"), ("gradient-descent", "gradient descent", "o-")):
        ax.plot(*np.array(runs[variant][0]["path"]).T, style, ms=3, lw=1, label=name, zorder=3)
    ax.plot(*minimum, "X", color="black", ms=9, linestyle="", label="minimum", zorder=4)
    paths = np.concatenate([runs[variant][0]["path"] for variant in ("sgd", "gradient-descent")])
    low, high = paths.min(axis=0), paths.max(axis=0)
    ends = (low + high) / 2 + np.array([[-0.6], [0.6]]) * (high - low).max()  # a square around both paths
    ax.set(xlim=ends[:, 0], ylim=ends[:, 1], aspect="equal")
    across, up = np.meshgrid(*(np.linspace(*limits, 80) for limits in (ax.get_xlim(), ax.get_ylim())))
    away = np.stack([across - minimum[0], up - minimum[1]], -1)
    ax.contour(across, up, np.einsum("...i,ij,...j->...", away, curvature, away) / 2, 12, colors="0.7", linewidths=0.7)
    ax.legend()


def _distances(ax, runs: Runs) -> None:
    for marker, rate in zip("os^", RATES, strict=True):
        series = [[point for point in run["points"] if point["rate"] == rate] for run in runs["sgd"]]
        distances = np.array([[point["distance"] for point in points] for points in series])
        ratios = [rate / point["batch"] for point in series[0]]
        mean, spread = distances.mean(axis=0), deviation(distances)
        ax.errorbar(ratios, mean, spread, fmt=marker, linestyle="", capsize=3, label=f"rate {rate}")
    line = np.array([min(RATES) / max(BATCHES), max(RATES) / min(BATCHES)])
    first = runs["sgd"][0]
    c = expected(first["curvature"], first["covariance"])
    ax.loglog(line, c * np.sqrt(line), "k-", marker="", lw=1, label=f"theory: {c:.2f} × root of rate / B")
    ax.minorticks_off()
    ax.set_yticks([0.02, 0.05, 0.1], ["0.02", "0.05", "0.10"])
    ax.legend()


CLAIM = Claim(
    id="C12",
    statement="With a part of the data for each step, descent does not come to rest at the minimum but scatters about "
    "it, by about the root of rate / batch size.",
    source="S2",
    lesson="01_gradient_descent_and_noise",
    variants=("gradient-descent", "sgd"),
    seeds=5,
    settings={"images": 50_000, "runs": 64, "updates": 2000},
    quick={"images": 10_000, "runs": 32, "updates": 300},
    run=run,
    judge=judge,
    picture=picture,
    caution="With fewer runs and updates the measured distances scatter, and the slope with them.",
)
