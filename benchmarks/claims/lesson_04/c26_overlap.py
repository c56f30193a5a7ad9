"""C26: does it save time to average gradients while back-propagation goes on?

Real Horovod workers make updates in four ways: compute alone, exchange alone, both one after the other, and both at
once, as Horovod's optimizer does. If nothing is hidden, a step takes the sum of the two times. The exchange can hide
behind the backward pass only, and the last gradient is exchanged after it. So at best, a step takes the forward pass,
then the longer of backward pass and exchange, and then the exchange of the last gradient. Horovod's timeline of one
update with overlap, and of one without, shows when gradients are exchanged.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import horovod.torch as hvd
import numpy as np
import torch
from torch import nn

from benchmarks.experiment.claim import Claim, Picture, Runs, Settings, Values, Verdict
from benchmarks.experiment.intervals import Difference, paired
from benchmarks.experiment.plots import BLUE, BROWN, GREY, PURPLE, panels
from benchmarks.instruments import horovod_ops
from benchmarks.instruments.horovod_launch import on_workers
from cifar.model import BootcampResNet
from cifar.workers import wait_for_gradients
from grader.report import timeline

SIZES = {"2_workers": 2, "4_workers": 4}  # number of workers by variant
MARKERS = 10  # exchanges whose end both the program's and Horovod's clock record, so that the clocks can be compared
BETWEEN = 0.5  # with half of what can be hidden, a step is as near to the best case as to the sum
Marks = list[tuple[str, float]]  # the name of each part of an update, and the second at which it ended


class Ways:
    """The four ways to make an update. Each returns when its parts ended. The networks start with equal weights."""

    def __init__(self, batch_size: int, device: str):
        split, _ = horovod_ops.data(device, images=1024, test_images=1)
        self.images, self.labels = split.batch(torch.arange(batch_size))
        self.plain, self.hooked = self._network(), self._network()
        self.optimizer = torch.optim.SGD(self.plain.parameters(), lr=0.01)
        optimizer = torch.optim.SGD(self.hooked.parameters(), lr=0.01)
        self.overlapping = hvd.DistributedOptimizer(optimizer, self.hooked.named_parameters())

    def _network(self) -> nn.Module:
        torch.manual_seed(0)
        return BootcampResNet().to(self.images.device)

    def _backward(self, net: nn.Module, optimizer: torch.optim.Optimizer) -> Marks:
        optimizer.zero_grad()
        loss = horovod_ops.loss_of(net, self.images, self.labels)
        forward = ("forward", time.perf_counter())
        loss.backward()
        loss.item()
        return [forward, ("backward", time.perf_counter())]

    def compute(self) -> Marks:
        """Compute an update without exchange."""
        marks = self._backward(self.plain, self.optimizer)
        self.optimizer.step()
        return marks

    def exchange(self) -> Marks:
        """Average all gradients without computation.

        The last layer's gradients come first, in the order in which back-propagation computes them.
        """
        named = reversed(list(self.plain.named_parameters()))
        handles = [hvd.allreduce_async_(weight.grad, name=f"after.{name}") for name, weight in named]
        for handle in handles:
            horovod_ops.wait(handle)
        return [("exchange", time.perf_counter())]

    def off(self) -> Marks:
        """Compute first, and exchange afterwards."""
        marks = self._backward(self.plain, self.optimizer) + self.exchange()
        self.optimizer.step()
        return marks

    def on(self) -> Marks:
        """Compute and exchange at once. A gradient's exchange begins when back-propagation has computed it."""
        marks = self._backward(self.hooked, self.overlapping)
        wait_for_gradients(self.overlapping)
        marks.append(("exchange", time.perf_counter()))
        self.overlapping.step()
        return marks


def steps(batch_size: int, updates: int, rounds: int, device: str) -> Values:
    """Runs on a worker. Returns the seconds per update of each way, one value per round.

    `traces` holds a timeline of one update with overlap on, and of one with overlap off.
    """
    ways = Ways(batch_size, device)
    seconds = {"compute": [], "exchange": [], "off": [], "on": []}
    for name in [*seconds] * (rounds + 1):
        seconds[name].append(_seconds(getattr(ways, name), updates))
    warm = {name: values[1:] for name, values in seconds.items()}  # the first round does not count
    return {"seconds": warm, "traces": {name: _trace(getattr(ways, name)) for name in ("off", "on")}}


def _seconds(update: Callable[[], Marks], updates: int) -> float:
    """The mean seconds of an update. The workers begin together, and the slowest worker's time counts."""
    lasted = []
    for _ in range(updates):
        horovod_ops.barrier()
        started = time.perf_counter()
        update()
        lasted.append(time.perf_counter() - started)
    return horovod_ops.gather(torch.tensor(lasted), "lasted").amax(0).mean().item()


def _trace(update: Callable[[], Marks]) -> Values:
    """A timeline of one update: what the program did, as (name, start, end), and what Horovod did.

    Times are in seconds from the update's beginning. Horovod's entries are (tensor, phase, start, end), and only rank 0
    has them.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.json"
        hvd.start_timeline(str(path))
        time.sleep(0.1)  # another thread begins to write the file meanwhile
        returned = {}
        for number in range(MARKERS):
            hvd.allreduce(torch.zeros(1), name=f"marker.{number}")
            returned[f"marker.{number}"] = time.perf_counter()
        began = time.perf_counter()
        marks = update()
        horovod_ops.barrier()
        hvd.stop_timeline()
        time.sleep(0.1)
        events = timeline.read(path.read_bytes()) if hvd.rank() == 0 else []
    return {"program": _spans(began, marks), "horovod": _exchanges(events, returned, began)}


def _spans(began: float, marks: Marks) -> list:
    ends = [end - began for _, end in marks]
    return [[name, start, end] for (name, _), start, end in zip(marks, [0.0, *ends], ends, strict=False)]


def _exchanges(events: list[timeline.Event], returned: dict[str, float], began: float) -> list:
    """The phases of each tensor's exchange, in seconds of the program's clock from the update's beginning.

    Horovod's times are converted. The program learns of a marker's end a little later than Horovod. The smallest such
    difference is therefore taken as the difference of the clocks.
    """
    phases = [event for event in events if event.phase in ("NEGOTIATE_ALLREDUCE", "ALLREDUCE")]
    ended = {event.tensor: event.end for event in phases if event.phase == "ALLREDUCE" and event.tensor in returned}
    apart = min((returned[name] - end for name, end in ended.items()), default=0.0) - began
    return [
        [event.tensor.removeprefix("after."), event.phase, event.start + apart, event.end + apart]
        for event in phases
        if event.tensor not in {*returned, "barrier"}
    ]


def run(variant: str, seed: int, settings: Settings) -> Values:
    """Measure the times, which are those of the slowest worker. The values are those of rank 0."""
    options = {name: settings[name] for name in ("batch_size", "updates", "rounds", "device")}
    environment = {"HOROVOD_TIMELINE": "DYNAMIC"}
    return on_workers(f"{__name__}:steps", SIZES[variant], environment, **options)[0]


def times(runs: Runs, variant: str) -> dict[str, np.ndarray]:
    """The seconds per update of every round of every run, for each way."""
    return {way: np.concatenate([run["seconds"][way] for run in runs[variant]]) for way in runs[variant][0]["seconds"]}


def hidden(runs: Runs, variant: str) -> np.ndarray:
    """The share that is hidden of the time that could be: 1 in the best case, and 0 if a step takes the sum.

    There is one value per launch, the mean of its rounds, because the rounds of a launch are not independent.
    """
    return np.array([_hidden(run).mean() for run in runs[variant]])


def _hidden(run: Values) -> np.ndarray:
    of = {way: np.array(seconds) for way, seconds in run["seconds"].items()}
    both = of["compute"] + of["exchange"]
    return (both - of["on"]) / (both - best(run))


def best(run: Values) -> np.ndarray:
    """The seconds of an update if overlap hides all that it can, one value for each round.

    The share of the forward pass comes from the timeline without overlap. All gradients are taken to be equally large.
    """
    compute, exchange = (np.array(run["seconds"][way]) for way in ("compute", "exchange"))
    trace = run["traces"]["off"]
    lasted = {name: end - start for name, start, end in trace["program"]}
    forward = lasted["forward"] / (lasted["forward"] + lasted["backward"])
    tail = exchange / len({name for name, *_ in trace["horovod"]})
    return forward * compute + np.maximum((1 - forward) * compute, exchange - tail) + tail


def excess(runs: Runs, variant: str) -> Difference:
    """The hidden share minus one half, with its interval."""
    found = hidden(runs, variant)
    return paired(found, np.full(len(found), BETWEEN))


def judge(runs: Runs) -> Verdict:
    """The claim holds if more than half of what can be hidden is hidden, with two and with four workers."""
    parts, words = [], {}
    for variant, size in SIZES.items():
        of, share = times(runs, variant), excess(runs, variant)
        words[variant] = "no difference seen" if not share.seen else "holds" if share.mean > 0 else "fails"
        ms = {way: 1000 * values.mean() for way, values in of.items()}
        least = 1000 * np.mean([best(run).mean() for run in runs[variant]])
        parts.append(
            f"with {size} workers a step takes {ms['on']:.0f} ms with overlap and {ms['off']:.0f} ms without; the best "
            f"case is {least:.0f} ms, the sum {ms['compute'] + ms['exchange']:.0f} ms, and "
            f"{hidden(runs, variant).mean():.0%} of the time between is saved ({words[variant]})"
        )
    text = "; ".join(parts)
    if len(set(words.values())) == 1:
        return Verdict(next(iter(words.values())), f"{text}.")
    return Verdict("depends", f"{text}: it depends on the number of workers that share the cores.")


def picture(runs: Runs) -> Picture:
    """The picture shows the step times by way (left), and timelines with overlap on and off (right)."""
    figure, (left, right) = panels(
        ("overlap, and number of workers", "time of an update (ms)"), ("ms since the update began", "gradients"),
        size=(9.0, 4.2),
    )  # fmt: skip
    _pairs(left, runs)
    _timelines(right, runs["2_workers"][0]["traces"])
    ms = {way: [1000 * times(runs, variant)[way].mean() for variant in SIZES] for way in ("off", "on")}
    return Picture(
        figure,
        "Left: the time of an update without and with overlap, as a pair of points for each launch, and lines for the "
        "best case and the sum. Right: the exchange of each gradient as a line in time, with overlap on, and with "
        "overlap off.",
        f"Left: with two workers an update took {ms['off'][0]:.0f} ms without overlap and {ms['on'][0]:.0f} ms with "
        f"it. With four workers it took {ms['off'][1]:.0f} and {ms['on'][1]:.0f} ms. Two joined points are one launch, "
        "and the large ones are the means. Best: the exchange is hidden as far as possible. Sum: computing alone, plus "
        "exchanging alone. Right: one update of two workers. A line is a gradient. Thin: it waits. Thick: it is "
        "exchanged. Brown: the backward pass.",
    )


def _pairs(ax, runs: Runs) -> None:
    """Draw each launch as two joined points, overlap off and on, beside what the best case and the sum would be."""
    ticks = []
    for place, (variant, size) in zip((0, 3), SIZES.items(), strict=True):
        pairs = np.array([[1000 * np.mean(run["seconds"][way]) for way in ("off", "on")] for run in runs[variant]])
        ax.plot([place, place + 1], pairs.T, "o-", color=GREY, markersize=4, linewidth=1)
        ax.plot([place, place + 1], pairs.mean(0), "D-", color=BLUE, markersize=8, linewidth=2)
        ticks += [(place, f"off, {size}"), (place + 1, f"on, {size}")]
        of = {way: 1000 * values.mean() for way, values in times(runs, variant).items()}
        least = 1000 * np.mean([best(run).mean() for run in runs[variant]])
        for height, style, name in ((least, "-", "best"), (of["compute"] + of["exchange"], "--", "sum")):
            ax.hlines(height, place - 0.3, place + 1.3, colors=BROWN, linestyles=style, linewidth=1.5)
            ax.text(place + 1.35, height, name, va="center", fontsize=9, color=BROWN)
    ax.set_xticks(*zip(*ticks, strict=True))
    ax.set_xlim(-0.6, 5)
    ax.set_ylim(bottom=0)


def _timelines(ax, traces: dict[str, Values]) -> None:
    rows = 0
    for way in ("off", "on"):
        trace, first = traces[way], rows
        tensors = list(dict.fromkeys(name for name, *_ in sorted(trace["horovod"], key=lambda span: span[2])))
        for name, phase, start, end in trace["horovod"]:
            width = 3 if phase == "ALLREDUCE" else 1
            ax.hlines(rows + tensors.index(name), 1000 * start, 1000 * end, colors=PURPLE, linewidth=width)
        rows += len(tensors) + 3
        for name, start, end in trace["program"]:
            if name == "backward":
                ax.fill_between([1000 * start, 1000 * end], first - 1, rows - 3, color=BROWN, alpha=0.2, lw=0)
        ax.text(1, first - 1.3, f"overlap {way}", fontsize=9)
    ax.set(yticks=[], ylim=(rows - 1, -4), xlim=(0, None))
    ax.grid(visible=False)


CLAIM = Claim(
    id="C26",
    statement="Averaging gradients while back-propagation goes on hides the exchange: a step takes max(), not sum().",
    source="S3",
    lesson="14_lab_of_lesson_04",
    variants=tuple(SIZES),
    seeds=5,
    settings={"batch_size": 32, "updates": 30, "rounds": 15},
    quick={"updates": 4, "rounds": 3},
    run=run,
    judge=judge,
    picture=picture,
    caution="A few short rounds, and whatever else the machine does meanwhile, make the times scatter.",
    timing_sensitive=True,
)
