"""How fast is one worker's step? It is compared with a plain loop, and with the processor's peak.

A training step needs three times the operations of a forward pass: the forward pass itself, the gradients of the
weights, and the gradients of the inputs. The first convolution does not need the last of these. Images/s can be at most
the processor's peak divided by the operations per image. The peak is measured here with large matrices.
"""

import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.plots import panels
from benchmarks.instruments import gloo_processes
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.speed import loop
from benchmarks.speed.loop import NAMES
from benchmarks.speed.tables import Table, told
from cifar.workers import autocast, use_device

BATCH = 512  # images per update of both loops: that of the lessons
MATRIX = 2048  # rows and columns of the matrices
PRODUCTS = 5  # matrix products that are timed; the fastest counts
AIM = 0.80  # share of the peak that our step should reach
FACTOR = 2.0  # how many times the plain loop's speed counts as "far faster"
# Kinds of PyTorch's operators, by parts of their names. An operator of no kind is "other".
KINDS = {
    "convolution": ("conv",),
    "batch norm": ("batch_norm",),
    "ReLU and pooling": ("relu", "clamp_min", "threshold", "pool"),
    "copies and casts": ("copy",),
    "images": ("index", "unfold", "flip", "where", "pad", "div", "sub"),
}


def ours(network: str, updates: int) -> dict:
    """Runs on a worker. Measures images/s, the operations per image, and the share of the time of each kind.

    The worker must not be a forked process, as those of `on_peers` are: there the profiler waits for ever.
    """
    train = gloo_processes.data(loop.IMAGES)
    use_device("cpu")
    net = loop.build(network)
    optimizer = torch.optim.SGD(net.parameters(), lr=loop.RATE, momentum=0.9)
    data = loop.endless(train, 0, 1, BATCH)
    seconds = loop.seconds(net, optimizer, data, updates, lambda: None)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        loop.seconds(net, optimizer, data, 1, lambda: None)
    return {
        "images_per_s": updates * BATCH / seconds, "operations": of_a_step(net), "time": _by_kind(profiler),
        "bf16": isinstance(autocast(torch.device("cpu")), torch.autocast),
    }  # fmt: skip


def operations(net: nn.Module) -> int:
    """The floating-point operations of one image's forward pass. A multiply-add counts as two."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net(torch.zeros(1, 3, 32, 32))
    return counter.get_total_flops()


def of_a_step(net: nn.Module) -> int:
    """The floating-point operations of one image's training step.

    The gradient of the first convolution's input is not needed and not counted.
    """
    first = next(module for module in net.modules() if isinstance(module, nn.Conv2d))
    return 3 * operations(net) - operations(first)


def _by_kind(profiler: torch.profiler.profile) -> dict[str, float]:
    """The share of the time of each kind of operator. The shares add up to 1."""
    times = dict.fromkeys([*KINDS, "other"], 0.0)
    for event in profiler.key_averages():
        kind = next((kind for kind, parts in KINDS.items() if any(part in event.key for part in parts)), "other")
        times[kind] += event.self_cpu_time_total
    return {kind: of / sum(times.values()) for kind, of in times.items()}


def peak() -> dict[str, float]:
    """Runs on a worker. Returns the floating-point operations per second of the fastest matrix product, by format.

    bfloat16 is measured only if the course uses it on this processor.
    """
    use_device("cpu")
    found = {}
    for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        if name == "bfloat16" and not isinstance(autocast(torch.device("cpu")), torch.autocast):
            continue
        a, b = (torch.randn(MATRIX, MATRIX).to(kind) for _ in range(2))
        times = []
        for _ in range(PRODUCTS + 1):
            started = time.perf_counter()
            a @ b
            times.append(time.perf_counter() - started)
        found[name] = 2 * MATRIX**3 / min(times)
    return found


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure one way with one network, or the peak."""
    if variant == "peak":
        return on_workers(f"{__name__}:peak", 1)[0]
    network, way = variant.split("-")
    updates = max(1, settings["images"] // BATCH)
    if way == "ours":
        return on_workers(f"{__name__}:ours", 1, network=network, updates=updates)[0]
    return {"images_per_s": tutorial(network, BATCH, updates)}


def tutorial(network: str, batch_size: int, updates: int) -> float:
    """The images/s of the plain loop, which runs as its own program. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "benchmarks.speed.rivals.tutorial", network, str(batch_size), str(updates)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])


def speeds(runs: Runs, network: str, way: str) -> np.ndarray:
    """The images/s of a way with a network, one value per round."""
    return np.array([run["images_per_s"] for run in runs[f"{network}-{way}"]])


def shares(runs: Runs, network: str) -> np.ndarray:
    """Our speed divided by the largest speed that the peak of its number format allows: one value per round."""
    pairs = zip(runs[f"{network}-ours"], runs["peak"], strict=True)
    return np.array([
        run["operations"] * run["images_per_s"] / peak["bfloat16" if run["bf16"] else "float32"]
        for run, peak in pairs
    ])  # fmt: skip


def _factors(runs: Runs, network: str) -> np.ndarray:
    return speeds(runs, network, "ours") / speeds(runs, network, "tutorial")


def table(runs: Runs) -> Table:
    """The table has one row per network."""
    rows = [
        (
            name, told(speeds(runs, network, "ours"), 0), told(speeds(runs, network, "tutorial"), 0),
            told(_factors(runs, network), 1), told(100 * shares(runs, network), 0), _format(runs, network),
        )
        for network, name in NAMES.items()
    ]  # fmt: skip
    return Table(("network", "ours, images/s", "plain loop, images/s", "ratio", "% of the peak", "peak of"), rows)


def _format(runs: Runs, network: str) -> str:
    return "bfloat16" if runs[f"{network}-ours"][0]["bf16"] else "float32"


def judge(runs: Runs) -> Verdict:
    """The claim holds if both networks reach both aims, and fails if no aim is reached.

    The sentence also says how ResNet-9's time is divided.
    """
    share = float(np.median(shares(runs, "resnet9")))
    aims = [np.median(shares(runs, network)) >= AIM for network in NAMES]
    aims += [np.median(_factors(runs, network)) >= FACTOR for network in NAMES]
    spent = {kind: np.mean([run["time"][kind] for run in runs["resnet9-ours"]]) for kind in [*KINDS, "other"]}
    where = ", ".join(f"{kind} {part:.0%}" for kind, part in spent.items())
    text = f"ResNet-9 reaches {share:.0%} of the peak of {_format(runs, 'resnet9')} (the aim: {AIM:.0%}): "
    text += f"its convolutions alone {share / spent['convolution']:.0%}, in {spent['convolution']:.0%} of the time"
    factors = ", ".join(f"{NAMES[network]} {np.median(_factors(runs, network)):.1f}" for network in NAMES)
    word = "holds" if all(aims) else "depends" if any(aims) else "fails"
    told = f"Times the plain loop's speed: {factors} (the aim: {FACTOR:.0f}). ResNet-9's time goes into: {where}."
    return Verdict(word, f"{text}. {told}")


def picture(runs: Runs) -> Picture:
    """The picture shows images/s of both loops with the limit (left), and how our step's time is divided (right)."""
    figure, (left, right) = panels(("", "images/s, one worker"), ("share of our step's time (%)", ""))
    at = np.arange(len(NAMES))
    limits = [np.median(speeds(runs, network, "ours")) / np.median(shares(runs, network)) for network in NAMES]
    middles = {way: [np.median(speeds(runs, network, way)) for network in NAMES] for way in ("tutorial", "ours")}
    for shift, (label, heights) in enumerate(
        {"plain loop": middles["tutorial"], "ours": middles["ours"], "limit of the peak": limits}.items()
    ):
        left.bar(at + 0.27 * (shift - 1), heights, 0.25, label=label)
    left.set_xticks(at, NAMES.values())
    left.legend(fontsize=8)
    begin = np.zeros(len(NAMES))
    for kind in [*KINDS, "other"]:
        width = np.array([100 * np.mean([run["time"][kind] for run in runs[f"{network}-ours"]]) for network in NAMES])
        right.barh(at, width, 0.5, begin, label=kind)
        begin += width
    right.set_yticks(at, NAMES.values())
    right.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    parts = "; ".join(
        f"{name}: {np.median(_factors(runs, network)):.1f} times the plain loop, "
        f"{np.median(shares(runs, network)):.0%} of the limit"
        for network, name in NAMES.items()
    )
    return Picture(figure, f"Bars of images a second, and of where the time goes. {parts}.", f"{parts} (medians).")


CLAIM = Claim(
    id="step",
    statement="A step of ours is far faster than a plain loop's, and near what the processor can multiply.",
    source="",
    lesson="02_one_worker",
    variants=("peak", *(f"{network}-{way}" for network in NAMES for way in ("tutorial", "ours"))),
    seeds=3,
    settings={"images": 8192},
    quick={"images": 1024},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few updates say little of a speed.",
    timing_sensitive=True,
)
