"""C10: how do late gradients, and workers with their own weights, change training?

All variants run on real Horovod workers. In the variant `stale`, every mean gradient is applied a number of updates
after it was computed. This happens where workers send their gradients to a server without waiting for each other. In
the variant `elastic` (EASGD: Zhang et al. 2015, arXiv:1412.6651), every worker trains its own weights. Every `period`
updates, a spring of stiffness ρ pulls each worker's weights towards a common centre, and the centre towards them. For
each of these updates, the pull is the rate times ρ times the distance.
"""

from collections import deque
from collections.abc import Iterator

import horovod.torch as hvd
import numpy as np
import torch
from torch import Tensor

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import subset
from benchmarks.experiment.intervals import deviation, mean_std, paired
from benchmarks.experiment.plots import counted, panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from benchmarks.instruments.simulated_workers import evaluate
from cifar.data import Split, augment, shard, shuffle
from cifar.model import BootcampResNet

STALENESS = (0, 1, 2, 4, 8)  # number of updates by which a gradient is late
STIFFNESS = (0.0, 0.01, 0.03, 0.1, 0.3)  # ρ: if rate * ρ * period * workers reaches 1, the centre overshoots
HIGHEST_LOSS = 10.0  # nats: a diverged run counts as this loss, otherwise a single run would decide every mean
SAME_RANKS = 0.9  # rank correlation: with five values, one pair of neighbours may be in the wrong order


class Training:
    """A worker's network, data and random numbers. All workers start with the same weights."""

    def __init__(self, seed: int, batch_size: int, updates: int, data: tuple[Split, Split]):
        split, self.test = data
        order = shard(shuffle(len(split), seed, 0), hvd.rank(), hvd.size())
        self.batches = [split.batch(part) for part in order.split(batch_size)[:updates]]
        torch.manual_seed(seed)
        self.net = BootcampResNet().to(split.images.device)
        torch.manual_seed(seed + hvd.rank())

    def gradients(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the loss and the gradient vector of each update's batch, at the network's current weights."""
        for images, labels in self.batches:
            loss = horovod_ops.loss_of(self.net, augment(images), labels)
            yield loss.detach(), horovod_ops.flat(torch.autograd.grad(loss, list(self.net.parameters())))

    def loss(self) -> float:
        """The test loss of the network, which must be the same on all workers. Each tests a part of the images."""
        return capped(horovod_ops.mean(torch.tensor(evaluate(self.net, self.test, "test")["test_loss"]), "test"))


def capped(loss: Tensor) -> float:
    """The loss, but at most HIGHEST_LOSS. A loss that is not a number counts as HIGHEST_LOSS."""
    return loss.nan_to_num(HIGHEST_LOSS).clamp(max=HIGHEST_LOSS).item()


def stale(staleness: int, rate: float, period: int, **options) -> Values:
    """Runs on a worker. Trains with mean gradients that are applied `staleness` updates late.

    Returns the mean loss at each update and the test loss at the end, in nats.
    """
    training, late, losses = Training(**options), deque(), []
    for loss, gradient in training.gradients():
        late.append(horovod_ops.mean(gradient, "gradient"))
        losses.append(loss)
        if len(late) > staleness:
            horovod_ops.set_weights(training.net, horovod_ops.weights(training.net) - rate * late.popleft())
    losses = horovod_ops.mean(torch.stack(losses), "losses")
    return {"setting": staleness, "losses": [capped(loss) for loss in losses], "test_loss": training.loss()}


def elastic(stiffness: float, rate: float, period: int, **options) -> Values:
    """Runs on a worker. Trains with EASGD.

    Returns the mean loss at each update, the workers' relative distance from their mean before each exchange, and the
    centre's test loss. Without a spring, the mean of the workers' weights takes the place of the centre.
    """
    training, losses, spreads = Training(**options), [], []
    centre = horovod_ops.weights(training.net)
    for update, (loss, gradient) in enumerate(training.gradients()):
        mine = horovod_ops.weights(training.net) - rate * gradient
        losses.append(loss)
        if update % period == period - 1:
            horovod_ops.set_weights(training.net, mine)
            spreads.append(horovod_ops.spread(training.net))
            pull = rate * stiffness * period * (mine - centre)  # the sum of the pulls of all updates of the period
            mine, centre = mine - pull, centre + horovod_ops.total(pull, "pull")
        horovod_ops.set_weights(training.net, mine)
    losses = horovod_ops.mean(torch.stack(losses), "losses")
    horovod_ops.set_weights(
        training.net, centre if stiffness else horovod_ops.mean(horovod_ops.weights(training.net), "weights")
    )
    found = {"losses": [capped(loss) for loss in losses], "test_loss": training.loss()}
    return {"setting": stiffness, "spreads": spreads, **found}


WAYS = {"stale": (stale, STALENESS), "elastic": (elastic, STIFFNESS)}


def all_settings(batch_size: int, updates: int, test_images: int, device: str, **options) -> dict[str, list[Values]]:
    """Runs on a worker. Makes one training run after the other, for all variants and settings."""
    split, test = horovod_ops.data(device, updates * batch_size * hvd.size(), test_images)
    parts = split, subset(test, shard(torch.arange(test_images), hvd.rank(), hvd.size()))
    options |= {"batch_size": batch_size, "updates": updates, "data": parts}
    return {variant: [way(value, **options) for value in values] for variant, (way, values) in WAYS.items()}


def measure(seed: int, settings: Settings) -> dict[str, Values]:
    """Measure both variants in one launch. The values are those of rank 0."""
    names = ("rate", "period", "batch_size", "updates", "test_images", "device")
    options = {name: settings[name] for name in names}
    found = on_workers(f"{__name__}:all_settings", settings["workers"], seed=seed, **options)[0]
    return {variant: {"runs": found[variant]} for variant in WAYS}


def last_losses(runs: Runs, variant: str) -> np.ndarray:
    """The mean training loss over the last quarter of the updates, `(seeds, settings)`."""
    return np.array([[_end(one["losses"], 4) for one in run["runs"]] for run in runs[variant]])


def last_spreads(runs: Runs) -> np.ndarray:
    """The workers' mean distance over the last half of the exchanges, `(seeds, stiffnesses)`."""
    return np.array([[_end(one["spreads"], 2) for one in run["runs"]] for run in runs["elastic"]])


def _end(values: list[float], part: int) -> float:
    return float(np.mean(values[-(len(values) // part) :]))


def judge(runs: Runs) -> Verdict:
    """The claim holds if the loss rises with staleness and the spread falls with ρ, both beyond the seeds' noise."""
    loss, spread = last_losses(runs, "stale"), last_spreads(runs)
    rise, fall = paired(loss[:, -1], loss[:, 0]), paired(spread[:, -1], spread[:, 0])
    from scipy import stats

    rising = stats.spearmanr(STALENESS, loss.mean(0)).statistic
    falling = stats.spearmanr(STIFFNESS, spread.mean(0)).statistic
    text = (
        f"at one rate for all, the training loss changes by {rise.text(unit=' nats')} from staleness {STALENESS[0]} to "
        f"{STALENESS[-1]} (rank correlation {rising:.2f}), the spread of the workers' weights by "
        f"{fall.text(100, unit=' % of their length')} from ρ = {STIFFNESS[0]:g} to {STIFFNESS[-1]:g} "
        f"(rank correlation {falling:.2f})"
    )
    if not (rise.seen and fall.seen):
        return Verdict("no difference seen", f"{text}.")
    found = (rise.mean > 0 and rising > SAME_RANKS - 1e-9, fall.mean < 0 and falling < 1e-9 - SAME_RANKS)
    if all(found):
        return Verdict("holds", f"{text}.")
    if not any(found):
        return Verdict("fails", f"{text}.")
    which = ("staleness", "ρ") if found[0] else ("ρ", "staleness")
    return Verdict("depends", f"{text}: it holds for {which[0]}, not for {which[1]}.")


def picture(runs: Runs) -> Picture:
    """The picture shows the loss against staleness (left) and the spread against ρ (right)."""
    spread = ("stiffness ρ", "spread of the weights (% of length)")
    figure, (left, right) = panels(("staleness (updates)", "training loss at the end (nats)"), spread)
    late, own, apart = last_losses(runs, "stale"), last_losses(runs, "elastic"), 100 * last_spreads(runs)
    _line(left, STALENESS, late, "stale gradients")
    positions = range(len(STIFFNESS))
    _line(right, positions, apart, "spread")
    right.set(xticks=positions, xticklabels=[f"{value:g}" for value in STIFFNESS], ylim=(0, None))
    centre = np.array([[one["test_loss"] for one in run["runs"]] for run in runs["elastic"]])
    for ax in (left, right):
        ax.margins(x=0.08)
    return Picture(
        figure,
        f"Left: the loss over the staleness, from {late.mean(0)[0]:.2f} to {late.mean(0)[-1]:.2f} nats. Right: the "
        f"spread of the workers over ρ, from {apart.mean(0)[0]:.1f} to {apart.mean(0)[-1]:.1f} %.",
        f"Last quarter of the updates, bars: standard deviation over "
        f"{counted(len(late), 'seed')}. Staleness {STALENESS[-1]}: "
        f"{mean_std(late[:, -1])} nats against {mean_std(late[:, 0])} without. Test loss of the elastic centre: "
        f"{mean_std(centre[:, 1])} at ρ = {STIFFNESS[1]:g}, {mean_std(centre[:, -1])} at {STIFFNESS[-1]:g}; the "
        f"workers' own training loss {mean_std(own[:, 1])} and {mean_std(own[:, -1])}.",
    )


def _line(ax, x, found: np.ndarray, label: str) -> None:
    ax.errorbar(x, found.mean(0), deviation(found), capsize=3, label=label)


CLAIM = Claim(
    id="C10",
    statement="Asynchronous SGD pays for late gradients with a higher loss; elastic averaging with a larger ρ keeps "
    "the workers closer together.",
    source="S0, S1",
    lesson="13_lab_of_lesson_03",
    variants=tuple(WAYS),
    seeds=5,
    settings={"workers": 4, "batch_size": 32, "updates": 200, "rate": 0.1, "period": 4, "test_images": 2000},
    quick={"workers": 2, "batch_size": 16, "updates": 40, "test_images": 200},
    run_all=measure,
    judge=judge,
    picture=picture,
    caution="One short run: chance moves its loss as much as a small staleness does.",
)
