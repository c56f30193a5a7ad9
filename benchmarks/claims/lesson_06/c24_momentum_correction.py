"""C24: does momentum need a correction when the rate changes?

SGD is written so that its velocity has absorbed the rate: v becomes m v + rate * gradient, and v is subtracted from the
weights. At one update the rate is multiplied or divided by eight. With the correction of Goyal et al. 2017
(arXiv:1706.02677, section 3), the old velocity is multiplied by the same factor. Without it, the velocity keeps the
length that the old rate gave it. The length of each update and the loss are recorded before and after the change.
"""

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.dataset import data
from benchmarks.experiment.intervals import deviation, paired
from benchmarks.experiment.plots import GREY, counted, panels
from benchmarks.instruments.simulated_workers import Recipe, train

MOMENTUM = 0.9  # the usual value
MEMORY = round(1 / (1 - MOMENTUM))  # number of updates over which a velocity averages
FACTORS = {"up": 8.0, "down": 1 / 8}  # change of the rate: linear scaling for eight workers
LOW, HIGH = 0.005, 0.04  # the rates before and after a rise
VARIANTS = ("up-corrected", "up-uncorrected", "down-corrected", "down-uncorrected")
WRONG = 1.25  # an update that is too short or too long by a larger factor is a transient; batches cause less
SETTLED = 3 * MEMORY  # updates after which only 0.9^30, 4 %, of the old velocity remains


class AbsorbedSGD(Optimizer):
    """SGD whose velocity includes the rate: v = m v + rate * gradient, and weights -= v.

    `lengths` holds the length of v at each update. `correct` switches the momentum correction on.
    """

    def __init__(self, params, lr: float, correct: bool, momentum: float = MOMENTUM):
        super().__init__(params, {"lr": lr, "momentum": momentum, "correct": correct})
        self.lengths: list[float] = []

    @torch.no_grad()
    def step(self, closure=None) -> None:
        """Make one update. With `correct`, the old velocity is first multiplied by new rate / old rate."""
        square = 0.0
        for group in self.param_groups:
            factor = group["lr"] / group.get("last", group["lr"]) if group["correct"] else 1.0
            for weight in group["params"]:
                velocity = self._velocity(weight).mul_(group["momentum"] * factor).add_(weight.grad, alpha=group["lr"])
                weight.sub_(velocity)
                square += velocity.square().sum().item()
            group["last"] = group["lr"]
        self.lengths.append(math.sqrt(square))

    def _velocity(self, weight: Tensor) -> Tensor:
        return self.state[weight].setdefault("velocity", torch.zeros_like(weight))


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the length and loss of each update, from `before` updates before the change, and the last accuracy."""
    direction, correction = variant.split("-")
    factor, change = FACTORS[direction], settings["change"]
    made: list[AbsorbedSGD] = []

    def optimizer(net: nn.Module) -> Optimizer:
        rate = LOW if factor > 1 else HIGH
        made.append(AbsorbedSGD(net.parameters(), rate, correct=correction == "corrected"))
        return made[-1]

    updates = change + settings["after"]
    recipe = Recipe(
        optimizer=optimizer, batch_size=settings["batch_size"], epochs=updates, max_updates=updates,
        factor=partial(_stepped, change, factor),
    )  # fmt: skip
    history = train(recipe, data(settings), seed)
    first = change - settings["before"]
    return {
        "factor": factor, "before": settings["before"], "lengths": made[0].lengths[first:],
        "losses": history.losses[first:], "test_accuracy": history.last["test_accuracy"],
    }  # fmt: skip


def _stepped(change: int, factor: float, update: int, updates_an_epoch: int) -> float:
    return factor if update >= change else 1.0


def wrong(runs: Runs, direction: str, begin: int, end: int | None) -> list[float]:
    """The length of the uncorrected updates divided by that of the corrected ones, one value per run.

    It is the geometric mean over the updates from `begin` to `end`, counted from the change.
    """
    pairs = zip(runs[f"{direction}-corrected"], runs[f"{direction}-uncorrected"], strict=False)
    return [float(np.exp(np.mean(_log_ratio(*pair, begin, end)))) for pair in pairs]


def _log_ratio(right: Values, other: Values, begin: int, end: int | None) -> np.ndarray:
    after, uncorrected = (np.array(run["lengths"][run["before"] :]) for run in (right, other))
    return np.log(uncorrected[begin:end] / after[begin:end])


def excess(runs: Runs, direction: str) -> tuple[list[float], list[float]]:
    """The mean losses over the first MEMORY updates after the change: uncorrected and corrected, one value per run."""
    both = []
    for correction in ("uncorrected", "corrected"):
        found = runs[f"{direction}-{correction}"]
        both.append([float(np.mean(run["losses"][run["before"] :][:MEMORY])) for run in found])
    count = min(map(len, both))
    return both[0][:count], both[1][:count]


def transient(runs: Runs, direction: str) -> bool:
    """Whether the first update after the change has a wrong length, of which less than half remains later.

    Both are compared on a logarithmic scale.
    """
    first, late = (np.mean(np.log(wrong(runs, direction, *part))) for part in ((0, 1), (SETTLED, None)))
    sign = -1 if FACTORS[direction] > 1 else 1  # without correction the velocity lags behind the rate
    return bool(sign * first > math.log(WRONG) and abs(late) < first * sign / 2)


def judge(runs: Runs) -> Verdict:
    """The claim holds if the lengths without correction have a transient both for the rise and for the fall.

    The sentence also gives the losses.
    """
    seen = [direction for direction in FACTORS if transient(runs, direction)]
    text = "; ".join(_sentence(runs, direction) for direction in FACTORS)
    if len(seen) == len(FACTORS):
        return Verdict("holds", f"{text}.")
    return Verdict("depends" if seen else "fails", f"a transient for {' and '.join(seen) or 'neither change'}: {text}.")


def _sentence(runs: Runs, direction: str) -> str:
    first, late = (np.mean(wrong(runs, direction, *part)) for part in ((0, 1), (SETTLED, None)))
    change = paired(*excess(runs, direction))
    seen = "" if change.seen else ", no difference seen"
    return (
        f"rate {direction}: without correction the first update is {first:.2f} times as long as with, after "
        f"{SETTLED} updates {late:.2f} times; loss over the first {MEMORY} updates {change.text(1, 3)}{seen}"
    )


def picture(runs: Runs) -> Picture:
    """The picture shows the updates' lengths relative to those before the change, and the differences in loss."""
    update = "updates since the change"
    figure, (up, down, loss) = panels(
        (update, "length / length before, rate up"), (update, "length / length before, rate down"),
        (update, "loss without − with correction (nats)"), size=(11.0, 3.6),
    )  # fmt: skip
    for ax, direction in ((up, "up"), (down, "down")):
        for correction in ("corrected", "uncorrected"):
            _draw_lengths(ax, runs[f"{direction}-{correction}"], correction)
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.legend()
    for direction in FACTORS:
        _draw_losses(loss, runs, direction)
    loss.axhline(0, color=GREY, linewidth=0.8)
    loss.legend()
    text = {name: f"{np.mean(wrong(runs, name, 0, 1)):.2f}" for name in FACTORS}
    count = min(len(found) for found in runs.values())
    return Picture(
        figure,
        f"Three line plots over the updates around the change. The first length without correction is {text['up']} "
        f"times the corrected one when the rate rises, {text['down']} times when it falls. The third plot is of the "
        "difference in loss.",
        f"Mean of {counted(count, 'run')} with sample deviation. First update without correction, beside that with: "
        f"{text['up']} times as long when the rate rises, {text['down']} times when it falls.",
    )


def _draw_lengths(ax, found: list[Values], label: str) -> None:
    before = found[0]["before"]
    lengths = np.array([np.divide(run["lengths"], np.mean(run["lengths"][:before])) for run in found])
    _draw(ax, lengths, before, label)


def _draw_losses(ax, runs: Runs, direction: str) -> None:
    pairs = zip(runs[f"{direction}-uncorrected"], runs[f"{direction}-corrected"], strict=False)
    differences = np.array([np.subtract(without["losses"], with_["losses"]) for without, with_ in pairs])
    _draw(ax, differences, runs[f"{direction}-corrected"][0]["before"], f"rate {direction}")


def _draw(ax, values: np.ndarray, before: int, label: str) -> None:
    updates = np.arange(values.shape[1]) - before
    mean, spread = values.mean(0), deviation(values)
    (line,) = ax.plot(updates, mean, label=label, markevery=5)
    ax.fill_between(updates, mean - spread, mean + spread, color=line.get_color(), alpha=0.2)


CLAIM = Claim(
    id="C24",
    statement="When the rate changes, a velocity that has absorbed the rate needs a correction: without it there is a "
    "transient.",
    source="S3",
    lesson="16_lab_of_lesson_06",
    variants=VARIANTS,
    seeds=5,
    settings={"batch_size": 128, "before": 20, "change": 200, "after": 60, "test_images": 2000},
    quick={"batch_size": 32, "change": 50, "after": 50, "test_images": 200},
    run=run,
    judge=judge,
    picture=picture,
    caution="One seed and small batches: the lengths of single updates scatter, and so few updates do not settle a "
    "difference in the loss.",
)
