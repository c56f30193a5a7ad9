"""C17: does training take more memory than inference, and what is it spent on?

Peak memory of updates and of evaluations, each batch size in a fresh process, gives a fixed part and bytes an image.
The latter are set beside two candidates: the activations that autograd keeps for the backward pass, counted tensor by
tensor, and a gradient of all weights for each image, which one would need if gradients were summed last.
"""

import math

import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import panels
from benchmarks.instruments.memory import peak
from benchmarks.instruments.step_timing import Stepper
from cifar.data import Split, normalise

MEBI = 2**20
MORE = 1.2  # allocators round, and libraries keep buffers: less than a fifth more is not seen as more


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Peak bytes for each batch size; with training, also what autograd keeps and what each weight needs."""
    split, _ = data(settings)
    draw = torch.Generator().manual_seed(seed)
    count, largest = settings["sizes"], settings["largest"]
    batches = [largest * (number + 1) // count for number in range(count)]
    peaks = [
        peak(variant, *split.batch(torch.randint(len(split), (size,), generator=draw)), split.images.device.type)
        for size in batches
    ]
    values = {"batches": batches, "peaks": peaks}
    return values | _accounts(split, max(batches) // 2) if variant == "training" else values


def _accounts(split: Split, size: int) -> Values:
    """Bytes: kept for the backward pass an image, and weights, gradients and Adam's two averages together."""
    step = Stepper(split.images.device)
    half, whole = (kept(step, *split.batch(torch.arange(count))) for count in (size // 2, size))
    weights = sum(weight.nbytes for weight in step.net.parameters())
    return {"kept": (whole - half) / (size - size // 2), "weights": weights, "state": 4 * weights}


def kept(step: Stepper, images: Tensor, labels: Tensor) -> int:
    """Bytes of the tensors that autograd holds between forward and backward; each storage counts once."""
    storages = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        step(normalise(images), labels)
    return sum(storages.values())


def growth(run: Values) -> tuple[float, float]:
    """Bytes an image, and the fixed bytes, of the line through the peaks."""
    each, fixed = np.polyfit(run["batches"], run["peaks"], 1)
    return float(each), float(fixed)


def _means(runs: Runs) -> dict[str, float]:
    """MiB: an image and fixed in both modes, and the candidates for an image in training."""
    found = {}
    for mode, values in runs.items():
        each, fixed = zip(*map(growth, values), strict=True)
        found |= {f"{mode} each": np.mean(each) / MEBI, f"{mode} fixed": np.mean(fixed) / MEBI}
    found |= {name: np.mean([run[name] for run in runs["training"]]) / MEBI for name in ("kept", "weights", "state")}
    return {name: float(value) for name, value in found.items()}


def judge(runs: Runs) -> Verdict:
    """Held if training takes more at each batch size, and the growth is nearer to the activations than to gradients."""
    peaks = {mode: np.mean([run["peaks"] for run in found], axis=0) for mode, found in runs.items()}
    ratios = peaks["training"] / peaks["evaluation"]
    found = _means(runs)
    largest = runs["training"][0]["batches"][-1]
    each = [growth(run)[0] / MEBI for run in runs["training"]]
    text = (
        f"with {largest} images training peaks at {peaks['training'][-1] / MEBI:.0f} MiB and evaluation at "
        f"{peaks['evaluation'][-1] / MEBI:.0f}. An image more takes {mean_std(each, digits=3)} MiB in training and "
        f"{found['evaluation each']:.3f} in evaluation; autograd keeps {found['kept']:.3f} MiB of activations an "
        f"image, a gradient of the weights for each image would take {found['weights']:.2f}."
    )
    if (ratios < MORE).all():
        return Verdict("fails", f"no more in training: {text}")
    if (ratios < MORE).any():
        return Verdict("depends", f"on the batch size, only some take more: {text}")
    if _distance(found["training each"], found["kept"]) > _distance(found["training each"], found["weights"]):
        return Verdict("depends", f"more, but not where the activations are: {text}")
    return Verdict("holds", text)


def _distance(a: float, b: float) -> float:
    """How many times the one is the other, as a logarithm."""
    return abs(math.log(max(a, 1e-6) / max(b, 1e-6)))


def picture(runs: Runs) -> Picture:
    """Peaks against batch size, and what an image more takes beside the two candidates."""
    figure, (left, right) = panels(
        ("per-worker batch (images)", "peak memory (MiB)"), ("MiB for one image more", "part of the memory")
    )
    found = _means(runs)
    for mode, marker, colour in (("training", "o", "#0b3c5d"), ("evaluation", "s", "#d1495b")):
        batches = np.array(runs[mode][0]["batches"])
        for run in runs[mode]:
            left.plot(batches, np.array(run["peaks"]) / MEBI, marker, color=colour, linestyle="")
        left.plot(
            batches, found[f"{mode} fixed"] + found[f"{mode} each"] * batches, marker="", color=colour, label=mode
        )
    left.legend()
    bars = {
        "training, measured": found["training each"],
        "evaluation, measured": found["evaluation each"],
        "activations kept": found["kept"],
        "a gradient an image": found["weights"],
    }
    hatches = ["", "", "//", ".."]
    right.barh(list(bars), list(bars.values()), color="#9fb8c8", edgecolor="#0b3c5d", hatch=hatches)
    right.invert_yaxis()
    listed = ", ".join(f"{name} {value:.3f} MiB" for name, value in bars.items())
    return Picture(
        figure,
        "Left, peak memory against batch size: two rising lines, training above evaluation. Right, bars for one image "
        f"more: {listed}.",
        f"Peak memory of fresh processes, {len(runs['training'])} run(s). One image more: {listed}. Weights, gradients "
        f"and Adam's two averages take {found['state']:.1f} MiB, whatever the batch.",
    )


CLAIM = Claim(
    id="C17",
    statement="Training takes more memory than inference, and the activations take it, not a gradient for each image.",
    source="S1",
    lesson="02_one_worker",
    variants=("training", "evaluation"),
    seeds=3,
    settings={"largest": 512, "sizes": 8},
    quick={"largest": 256, "sizes": 2},
    run=run,
    judge=judge,
    picture=picture,
    caution="Two batch sizes draw a line, but do not show whether it is one.",
)
