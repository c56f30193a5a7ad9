"""C17: does training take more memory than inference, and what uses this memory?

The peak memory of updates and of evaluations is measured for several batch sizes, each in a fresh process. The peaks
give a fixed part and a number of bytes per image. This number is compared with two candidates. The first is the
activations that autograd keeps for the backward pass, counted tensor by tensor. The second is a gradient of all weights
for each image, which would be needed if gradients were summed last.
"""

import math

import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import mean_std
from benchmarks.experiment.plots import BLUE, BROWN, LIGHT, counted, panels
from benchmarks.instruments.memory import peak
from benchmarks.instruments.step_timing import Stepper
from cifar.data import Split, normalise

MEBI = 2**20  # bytes per MiB
MORE = 1.2  # a smaller ratio does not count as more memory, because allocators round and libraries keep buffers


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the peak bytes for each batch size.

    For training, also count the bytes that autograd keeps, and those of the weights and of Adam's state.
    """
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
    """Byte counts of training. `kept` is what autograd keeps per image for the backward pass.

    `weights` are all weights, and `state` are weights, gradients and Adam's two averages together.
    """
    step = Stepper(split.images.device)
    half, whole = (kept(step, *split.batch(torch.arange(count))) for count in (size // 2, size))
    weights = sum(weight.nbytes for weight in step.net.parameters())
    return {"kept": (whole - half) / (size - size // 2), "weights": weights, "state": 4 * weights}


def kept(step: Stepper, images: Tensor, labels: Tensor) -> int:
    """The bytes of the tensors that autograd keeps between forward and backward pass. Each storage counts once."""
    storages = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        step(normalise(images), labels)
    return sum(storages.values())


def growth(run: Values) -> tuple[float, float]:
    """Fit a line through the peaks. Returns the bytes per image and the fixed bytes."""
    each, fixed = np.polyfit(run["batches"], run["peaks"], 1)
    return float(each), float(fixed)


def _means(runs: Runs) -> dict[str, float]:
    """Means over the runs in MiB: memory per image and fixed memory in both modes, and the counts of training."""
    found = {}
    for mode, values in runs.items():
        each, fixed = zip(*map(growth, values), strict=True)
        found |= {f"{mode} each": np.mean(each) / MEBI, f"{mode} fixed": np.mean(fixed) / MEBI}
    found |= {name: np.mean([run[name] for run in runs["training"]]) / MEBI for name in ("kept", "weights", "state")}
    return {name: float(value) for name, value in found.items()}


def judge(runs: Runs) -> Verdict:
    """The claim holds if training takes more memory at each batch size and the activations explain its growth.

    They explain it if the growth per image is nearer to them than to a gradient for each image.
    """
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
    """The absolute logarithm of the ratio of two numbers."""
    return abs(math.log(max(a, 1e-6) / max(b, 1e-6)))


def picture(runs: Runs) -> Picture:
    """The picture shows the peaks against batch size, and the memory of one image more beside the two candidates."""
    figure, (left, right) = panels(
        ("per-worker batch (images)", "peak memory (MiB)"), ("MiB for one image more", "part of the memory")
    )
    found = _means(runs)
    for mode, marker, colour in (("training", "o", BLUE), ("evaluation", "s", BROWN)):
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
    right.barh(list(bars), list(bars.values()), color=LIGHT, edgecolor=BLUE, hatch=hatches)
    right.invert_yaxis()
    listed = ", ".join(f"{name} {value:.3f} MiB" for name, value in bars.items())
    return Picture(
        figure,
        "Left, peak memory against batch size: two rising lines, training above evaluation. Right, bars for one image "
        f"more: {listed}.",
        f"Peak memory of fresh processes, "
        f"{counted(len(runs['training']), 'run')}. One image more: {listed}. Weights, gradients "
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
