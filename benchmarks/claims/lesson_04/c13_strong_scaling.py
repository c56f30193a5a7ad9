"""C13: does a smaller per-worker batch limit scaling?

Real Horovod workers have one thread each. Strong scaling divides one global batch among them. Weak scaling gives each
of them a batch of that size. Both are measured with and without exchange of gradients. Where workers share cores, only
the same workers without exchange show how much time the exchange takes.
"""

import time

import horovod.torch as hvd
import numpy as np
import torch
from torch import Tensor
from torch.optim import SGD

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import Difference, deviation, paired
from benchmarks.experiment.plots import panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from cifar.data import Split
from cifar.model import BootcampResNet
from cifar.workers import wait_for_gradients

SIZES = {"2_workers": 2, "4_workers": 4}  # number of workers by variant
WAYS = ("strong", "weak")


def throughput(batch_size: int, images: int, rounds: int, device: str) -> dict[str, list[float]]:
    """Runs on a worker. Measures the images/s of all workers together, one value per round.

    Names that end with `_alone` are without exchange. `single` is rank 0 computing while the others wait.
    """
    split, _ = horovod_ops.data(device, images=1024, test_images=1)
    torch.set_num_threads(1)  # each worker has its own core, as long as there are enough
    batches = {"strong": batch_size // hvd.size(), "weak": batch_size}
    found = {"single": [], **{f"{way}{end}": [] for way in WAYS for end in ("", "_alone")}}
    for _ in range(rounds):
        horovod_ops.barrier()
        if hvd.rank() == 0:  # the other workers wait at the next barrier
            found["single"].append(_images_per_s(split, batch_size, images // batch_size))
        for way, batch in batches.items():
            for name, exchange in ((way, True), (f"{way}_alone", False)):
                horovod_ops.barrier()
                mine = _images_per_s(split, batch, images // batch, exchange, together=True)
                found[name].append(horovod_ops.total(torch.tensor(mine), "speed").item())
    return found


def _images_per_s(split: Split, batch: int, updates: int, exchange: bool = False, together: bool = False) -> float:
    """The images/s of this worker, after an update that does not count.

    With `together`, all other workers compute at the same time.
    """
    torch.manual_seed(0)
    net = BootcampResNet().to(split.images.device)
    optimizer = SGD(net.parameters(), lr=0.01)
    if exchange:
        optimizer = hvd.DistributedOptimizer(optimizer, net.named_parameters())
    images, labels = split.batch(torch.arange(batch))

    def update() -> Tensor:
        optimizer.zero_grad()
        loss = horovod_ops.loss_of(net, images, labels)
        loss.backward()
        wait_for_gradients(optimizer)
        optimizer.step()
        return loss

    update()
    if together:
        horovod_ops.barrier()
    started = time.perf_counter()
    for _ in range(updates):
        loss = update()
    loss.item()  # reading the loss waits until a GPU has finished
    seconds = time.perf_counter() - started
    if together and not exchange:
        horovod_ops.compute_on(update, "end")
    return updates * batch / seconds


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the speeds. They are sums over the workers, which rank 0 returns."""
    options = {name: settings[name] for name in ("batch_size", "images", "rounds", "device")}
    return on_workers(f"{__name__}:throughput", SIZES[variant], **options)[0]


def speeds(runs: Runs, variant: str, name: str) -> np.ndarray:
    """The images/s of each launch, averaged over its rounds.

    The rounds of a launch are not independent of each other, so a launch counts as one value.
    """
    return np.array([np.mean(run[name]) for run in runs[variant]])


def efficiency(runs: Runs, variant: str, way: str) -> np.ndarray:
    """The images/s with exchange divided by those without, for each round. The result is one mean per launch."""
    return np.array([np.divide(run[way], run[f"{way}_alone"]).mean() for run in runs[variant]])


def gaps(runs: Runs) -> dict[str, Difference]:
    """The efficiency of strong scaling minus that of weak scaling, for each variant."""
    return {
        variant: paired(efficiency(runs, variant, "strong"), efficiency(runs, variant, "weak")) for variant in SIZES
    }


def judge(runs: Runs) -> Verdict:
    """The claim holds if, with four workers, the exchange costs a larger share of the speed with the batch divided."""
    found = gaps(runs)
    parts = [
        f"with {SIZES[variant]} workers the exchange leaves "
        f"{efficiency(runs, variant, 'strong').mean():.0%} of the speed with the batch divided, "
        f"{efficiency(runs, variant, 'weak').mean():.0%} with the batch kept: "
        f"{gap.text(100, 0, ' points')}"
        for variant, gap in found.items()
    ]
    text = "; ".join(parts)
    most = found["4_workers"]
    if not most.seen:
        return Verdict("no difference seen", f"{text}.")
    return Verdict("holds" if most.mean < 0 else "fails", f"{text}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the images/s of all workers (left), and the share of them that the exchange leaves (right)."""
    share = "speed with exchange / without (%)"
    figure, (left, right) = panels(("workers", "images/s of all workers"), ("workers", share))
    sizes, one = [1, *SIZES.values()], speeds(runs, "2_workers", "single")
    names = {"strong": "global batch fixed (strong)", "weak": "per-worker batch fixed (weak)"}
    for way, name in names.items():
        for end, more in (("", ""), ("_alone", ", no exchange")):
            found = [one, *(speeds(runs, variant, way + end) for variant in SIZES)]
            _line(left, sizes, found, name.split(" (")[0] + more)
    for way, name in names.items():
        _line(right, sizes, [np.array([100.0]), *(100 * efficiency(runs, variant, way) for variant in SIZES)], name)
    for ax in (left, right):
        ax.set(xticks=sizes, ylim=(0, None))
        ax.legend(fontsize=8)
    strong, weak = (efficiency(runs, "4_workers", way).mean() for way in WAYS)
    return Picture(
        figure,
        "Left: images a second of one, two and four workers, four lines. Right: the share of the speed that is left "
        f"with exchange, at four workers {strong:.0%} (batch divided) and {weak:.0%} (batch kept).",
        f"With four workers the exchange leaves {strong:.0%} of the speed with the batch divided and {weak:.0%} with "
        f"the batch kept (bars: standard deviation over {len(runs['4_workers'])} launch(es)).",
    )


def _line(ax, sizes: list[int], found: list[np.ndarray], label: str) -> None:
    ax.errorbar(sizes, [of.mean() for of in found], [deviation(of) for of in found], capsize=3, label=label)


CLAIM = Claim(
    id="C13",
    statement="Smaller per-worker batches limit scaling: with a fixed global batch it saturates first.",
    source="S1",
    lesson="14_lab_of_lesson_04",
    variants=tuple(SIZES),
    seeds=5,
    settings={"batch_size": 128, "images": 2048, "rounds": 3},
    quick={"images": 128, "rounds": 2},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few short rounds, and whatever else the machine does meanwhile, make the speeds scatter.",
    timing_sensitive=True,
)
