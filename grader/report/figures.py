"""Draws one run: each function makes of the evidence a picture (SVG to stand in a page) and says what to see in it.

Colours of lines and words are variables of the page's style sheet, so that the page decides what is light and dark.
Whatever a submission wrote may be absent, not finite, ragged or endless: only so much of it is looked at.
"""

import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, zip_longest

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grader.common.contract import WORKERS
from grader.grading.evidence import Evidence
from grader.report import timeline
from grader.run.worker_log import Update, Worker

WIDTH = 360  # units of a picture, in which letters are 10.5 high: the width of a phone
MAX_UPDATES = 20_000  # of a worker; an honest one makes less than 1,000
MAX_POINTS = 150  # of a curve
MAX_MEANS = 70  # of a curve that jumps from update to update
MAX_DOTS = 4_800  # of a picture of shards
MAX_ROWS, MAX_BARS = 32, 1_000  # of a timeline
TOO_LARGE = 1e9  # to be drawn; an honest figure is far below

INK, MUTED, RULE, CARD = "#fe0001", "#fe0002", "#fe0003", "#fe0004"
LINES = ("#fe0010", "#fe0011", "#fe0012", "#fe0013")  # a worker each
PHASES = ("#fe0020", "#fe0021", "#fe0022", "#fe0023", "#fe0024")
VARIABLES = {INK: "ink", MUTED: "muted", RULE: "rule", CARD: "card"}
VARIABLES |= {color: f"worker-{number}" for number, color in enumerate(LINES)}
VARIABLES |= {color: f"phase-{number}" for number, color in enumerate(PHASES)}
# Of dots, which are the same on light and dark paper: from dark to light also in grey.
DOTS = ("#0b3c8c", "#b3450f", "#23a094", "#f2bd3b")
SEVERAL, NOBODY = "#000000", "#ffffff"

STYLES = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"))  # lines, and marks on them, that grey print tells apart
SETTINGS = {
    "svg.fonttype": "none", "text.parse_math": False, "axes.formatter.use_mathtext": False, "font.size": 10.5,
    "axes.labelsize": 10.5, "axes.titlesize": 10.5, "legend.fontsize": 10.5, "legend.frameon": False,
    "text.color": INK, "axes.labelcolor": MUTED, "xtick.color": RULE, "ytick.color": RULE, "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED, "axes.edgecolor": RULE, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": RULE, "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """`expect`: what a right run shows; `seen`: what this one does; `svg` is None where there is nothing to draw."""

    name: str
    title: str
    expect: str
    seen: str
    svg: Markup | None = None


def all_pictures(evidence: Evidence) -> list[Picture]:
    """The pictures of a run, in the order in which they explain it."""
    return [draw(evidence) for draw in (loss, rate, shards, one_update, weights, accuracy)]


def loss(evidence: Evidence) -> Picture:
    """Training loss by update, a line a worker."""
    title = "Training loss by update"
    expect = "Workers see different images but train one network: four lines that fall together."
    curves = [_finite(update.loss for update in _updates(worker)) for worker in evidence.workers]
    if not any(np.isfinite(curve).any() for curve in curves):
        return _reported_loss(evidence)

    def paint(figure: Figure) -> None:
        axes = _axes(figure, "update", "loss")
        for rank, curve in enumerate(curves):
            _line(axes, rank, *_means(curve))
        _legend(figure, axes)

    ends = [_words(_mean(curve[-max(1, len(curve) // 10) :]), ".3g") for curve in curves]
    seen = f"Mean over the last tenth of the updates, worker 0 to {WORKERS - 1}: {', '.join(ends)}.{_left_out(curves)}"
    return Picture("loss", title, expect, seen, _svg("loss", title, 250, paint))


def _reported_loss(evidence: Evidence) -> Picture:
    """Training loss by epoch in the run's own words, where no loss module told a worker's."""
    title, expect = "Training loss by epoch", "The loss falls."
    unseen = "No worker's own loss was seen: none of PyTorch's loss modules computed one that is a number."
    curve = _finite(line.train_loss for line in islice(evidence.metrics or [], MAX_UPDATES))
    if not np.isfinite(curve).any():
        return Picture("loss", title, expect, unseen)

    def paint(figure: Figure) -> None:
        axes = _axes(figure, "epoch", "loss, as reported")
        axes.plot(*_chosen(curve), color=LINES[0], marker="o", markersize=4, linewidth=1.4)

    first, last = _words(curve[0], ".3g"), _words(curve[-1], ".3g")
    seen = f"{unseen} metrics.jsonl reports {first} after epoch 1, {last} at the end."
    return Picture("loss", title, expect, seen, _svg("loss", title, 230, paint))


def rate(evidence: Evidence) -> Picture:
    """Learning rate by update; equal rates lie on each other as bands of a ribbon."""
    title = "Learning rate by update"
    expect = "All workers follow one schedule, drawn as one ribbon: it climbs during warmup, then falls."
    curves = [_finite(_highest(update.lr) for update in _updates(worker)) for worker in evidence.workers]
    if not any(np.isfinite(curve).any() for curve in curves):
        return Picture("rate", title, expect, "No rate was seen: no worker made an update.")

    def paint(figure: Figure) -> None:
        axes = _axes(figure, "update", "learning rate")
        for rank, curve in enumerate(curves):
            axes.plot(*_chosen(curve), color=LINES[rank], linewidth=7.5 - 2 * rank, label=f"worker {rank}")
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
        _legend(figure, axes)

    return Picture("rate", title, expect, _rates_seen(curves) + _left_out(curves), _svg("rate", title, 250, paint))


def _rates_seen(curves: list[np.ndarray]) -> str:
    rank = next(rank for rank, curve in enumerate(curves) if np.isfinite(curve).any())
    curve = curves[rank]
    peak = int(np.nanargmax(curve))
    told = f"Worker {rank}: {_words(curve[0])} at update 1, highest {_words(curve[peak])} at update {peak + 1}, "
    told += f"{_words(curve[-1])} at the last."
    shortest = min(map(len, curves))
    together = np.array([curve[:shortest] for curve in curves])
    unequal = ~np.isclose(together, together[0], equal_nan=True).all(axis=0)
    if unequal.any():
        return f"{told} The workers' rates differ from update {unequal.argmax() + 1} on."
    return f"{told} All workers have the same rate at each of {shortest:,} updates." if shortest else told


def shards(evidence: Evidence) -> Picture:
    """Which worker used which training image, in the first two epochs."""
    title = "Shards: which worker used which image"
    expect = (
        "Each dot is an image. Four colours in equal parts, next to no white, no black; "
        "where all images are shuffled, a new pattern each epoch."
    )
    total = evidence.profile.train_images
    used = sum(len(update.images) for worker in evidence.workers for update in _updates(worker))
    if not used:
        return Picture("shards", title, expect, "No worker fetched training images through cifar.data.")
    count = max(1, round(used / total))  # an epoch has passed when all workers together have used so many images
    owners = [_owners(evidence.workers, number, count, total) for number in range(min(2, count))]

    def paint(figure: Figure) -> None:
        for number, axes in enumerate(figure.subplots(1, 2, squeeze=False)[0]):
            axes.axis("off")
            if number < len(owners):
                _dots(axes, _sample(owners[number]))
                axes.set_title(f"epoch {number + 1}", color=INK)
        figure.legend(handles=_owner_patches(), loc="outside lower center", ncols=3, handlelength=1, handleheight=1)

    parts = [f"Epoch {number}: {_shares(owner)}." for number, owner in enumerate(owners, start=1)]
    if len(owners) == 2:
        parts.append(f"The same worker as in epoch 1: {np.mean(owners[0] == owners[1]):.1%}.")
    drawn = f" Drawn is one image of each {math.ceil(total / MAX_DOTS)}, at random." if total > MAX_DOTS else ""
    return Picture("shards", title, expect, " ".join(parts) + drawn, _svg("shards", title, 232, paint))


def _owners(workers: list[Worker], number: int, count: int, total: int) -> np.ndarray:
    """For each training image who used it in epoch `number`: a rank, -1 for nobody, WORKERS for more than one use."""
    uses, owner = np.zeros(total, int), np.full(total, -1)
    for rank, worker in enumerate(workers):
        lists = [update.images for update in _updates(worker)]
        length = sum(map(len, lists)) // count
        part = islice(chain.from_iterable(lists), number * length, number * length + min(length, 2 * total))
        images = np.fromiter((image for image in part if image < total), int)
        uses += np.bincount(images, minlength=total)
        owner[images] = rank
    return np.where(uses > 1, WORKERS, owner)


def _shares(owner: np.ndarray) -> str:
    part = [f"{np.mean(owner == rank):.1%}" for rank in range(WORKERS)]
    rest = f"{np.mean(owner == -1):.1%} by none, {np.mean(owner == WORKERS):.1%} more than once"
    return f"{', '.join(part)} of the images by worker 0 to {WORKERS - 1}, {rest}"


def _sample(owner: np.ndarray) -> np.ndarray:
    """At most MAX_DOTS entries, in order: one of each group at random, because a fixed step may hit one worker only."""
    edges = np.linspace(0, len(owner), min(len(owner), MAX_DOTS) + 1).astype(int)
    return owner[np.random.default_rng(0).integers(edges[:-1], edges[1:])]


def _dots(axes: Axes, owner: np.ndarray) -> None:
    columns = math.ceil(math.sqrt(len(owner) * 1.1))
    rows = math.ceil(len(owner) / columns)
    grid = np.full(rows * columns, WORKERS + 1)
    grid[: len(owner)] = owner
    axes.imshow(_colors(grid.reshape(rows, columns)), interpolation="none")
    axes.add_patch(matplotlib.patches.Rectangle((-0.5, -0.5), columns, rows, fill=False, edgecolor=RULE))


def _colors(numbers: np.ndarray) -> np.ndarray:
    """RGBA, uint8, of -1 (nobody), ranks, WORKERS (several) and WORKERS + 1 (no image)."""
    table = matplotlib.colors.to_rgba_array([NOBODY, *DOTS, SEVERAL, "none"])
    return (table * 255).astype(np.uint8)[numbers + 1]


def _owner_patches() -> list[Patch]:
    named = {f"worker {rank}": color for rank, color in enumerate(DOTS)} | {"none": NOBODY, "more than once": SEVERAL}
    return [Patch(facecolor=color, edgecolor=MUTED, linewidth=0.6, label=name) for name, color in named.items()]


def one_update(evidence: Evidence) -> Picture:
    """Horovod's timeline of one update."""
    title = "One update in Horovod's timeline"
    expect = "Every gradient is exchanged once: as soon as all workers have it, or together with its group."
    events = timeline.one_update(timeline.read(evidence.timeline))
    if not events:
        unseen = "There is none that can be read: Horovod's timeline is on for a few updates only."
        return Picture("timeline", title, expect, unseen)
    seen = _update_seen(events)
    tensors = _tensors(events)[:MAX_ROWS]
    events = [event for event in events if _kind(event) == 0 or event.tensor in tensors][:MAX_BARS]
    start = min(event.start for event in events)

    def paint(figure: Figure) -> None:
        axes = _axes(figure, "ms", "")
        for kind in range(len(KINDS)):
            _bars(axes, [event for event in events if _kind(event) == kind], kind, start, tensors)
        axes.set_yticks(range(len(tensors)), [_short(name) for name in tensors], fontsize=8.8)
        axes.set_ylim(len(tensors) - 0.4, -0.6)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        patches = [
            Patch(facecolor=PHASES[kind], edgecolor=MUTED, linewidth=0.6, label=KINDS[kind])
            for kind in sorted(set(map(_kind, events)))
        ]
        figure.legend(handles=patches, loc="outside upper center", ncols=3, handlelength=1, handleheight=1)

    height = 90 + 11 * max(4, len(tensors))
    return Picture("timeline", title, expect, seen, _svg("timeline", title, height, paint))


KINDS = ("compute only", "wait for others", "all-reduce", "copy", "transfer")  # each is drawn over those before


def _kind(event: timeline.Event) -> int:
    if event.phase == timeline.COMPUTE:
        return 0
    if event.phase.startswith(("NEGOTIATE", "WAIT", "QUEUE")):
        return 1
    if event.phase.startswith(("GLOO", "NCCL", "MPI", "CCL")):
        return 4
    return 3 if re.match("MEMCPY|INIT|ALLOCATE|COPY", event.phase) else 2


def _bars(axes: Axes, events: list[timeline.Event], kind: int, start: float, tensors: list[str]) -> None:
    """Bars of one kind in their tensors' rows; computing, which is for all tensors, goes through all rows."""
    rows = [(len(tensors) - 1) / 2 if kind == 0 else tensors.index(event.tensor) for event in events]
    axes.barh(
        rows, [event.seconds * 1000 for event in events], height=len(tensors) + 0.2 if kind == 0 else 0.8,
        left=[(event.start - start) * 1000 for event in events], color=PHASES[kind],
    )  # fmt: skip


def _short(name: str, most: int = 25) -> str:
    """In ASCII, and of a long name its end, which tells tensors apart."""
    name = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in name)
    return name if len(name) <= most else "..." + name[3 - most :]


def _tensors(events: list[timeline.Event]) -> list[str]:
    return list(dict.fromkeys(event.tensor for event in events if event.phase != timeline.COMPUTE))


def _update_seen(events: list[timeline.Event]) -> str:
    start, end = min(event.start for event in events), max(event.end for event in events)
    computed = sum(event.seconds for event in events if event.phase == timeline.COMPUTE)
    before = f", of which {computed * 1000:,.0f} ms before the first gradient" if computed else ""
    count = len(_tensors(events))
    rest = f"; drawn are the first {MAX_ROWS}" if count > MAX_ROWS else ""
    return f"{(end - start) * 1000:,.0f} ms on worker 0{before}. Tensors exchanged: {count:,}{rest}."


def weights(evidence: Evidence) -> Picture:
    """Hashes of the workers' weights as a strip: a column an update, a row a worker."""
    title = "Weights: equal on all workers?"
    expect = "A column an update, a row a worker. Workers with equal weights have one colour: all rows dark blue."
    columns = _hash_groups(evidence.workers)
    if not columns:
        return Picture("weights", title, expect, "No worker wrote down a hash of its weights.")
    strip = np.array(_binned(columns, MAX_POINTS)).T

    def paint(figure: Figure) -> None:
        axes = _axes(figure, "update (0: before the first)", "")
        axes.imshow(
            _colors(strip), interpolation="none", aspect="auto", extent=(-0.5, len(columns) - 0.5, WORKERS - 0.5, -0.5)
        )
        axes.set_yticks(range(WORKERS), [f"worker {rank}" for rank in range(WORKERS)])
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
        for line in range(1, WORKERS):
            axes.axhline(line - 0.5, color=CARD, linewidth=3)

    return Picture("weights", title, expect, _weights_seen(columns), _svg("weights", title, 150, paint))


def _hash_groups(workers: list[Worker]) -> list[list[int]]:
    """For each update (the first entry: before it) and worker the lowest rank with the same hash; -1 if it has none."""
    if not any(worker.first for worker in workers):
        return []
    starts = [worker.first.start if worker.first else None for worker in workers]
    hashes = zip_longest(*([update.weights for update in _updates(worker)] for worker in workers))
    return [[-1 if value is None else column.index(value) for value in column] for column in (starts, *hashes)]


def _binned(columns: list[list[int]], most: int) -> list[list[int]]:
    """At most `most` columns: of each group the first one in which the workers differ, else its first one."""
    edges = np.linspace(0, len(columns), min(most, len(columns)) + 1).astype(int)
    groups = [columns[start:stop] for start, stop in pairwise(edges)]
    return [next((column for column in group if any(column)), group[0]) for group in groups]


def _weights_seen(columns: list[list[int]]) -> str:
    apart = next((number for number, column in enumerate(columns) if any(column)), None)
    if apart is None:
        return f"Equal on all workers before the first and after each of {len(columns) - 1:,} updates."
    silent = ", ".join(str(rank) for rank, group in enumerate(columns[apart]) if group == -1)
    if silent and apart == 0:
        return f"Worker {silent} wrote nothing."
    if silent:
        return f"Equal on all workers until worker {silent} stopped after update {apart - 1:,}."
    odd = ", ".join(str(rank) for rank, group in enumerate(columns[apart]) if group)
    when = f"After update {apart:,}" if apart else "Before the first update"
    return f"{when} worker {odd} had other weights than worker 0."


def accuracy(evidence: Evidence) -> Picture:
    """Test accuracy by epoch, with the target and what the grader measured."""
    title = "Test accuracy by epoch"
    expect = "The reported accuracy rises to above the target, and the grader measures the same."
    reported = _finite(line.test_accuracy for line in islice(evidence.metrics or [], MAX_UPDATES)) * 100
    found = evidence.checkpoint
    measured = (
        {"measured, visible images": found.visible * 100, "measured, secret images": found.secret * 100}
        if found
        else {}
    )
    if not len(reported) and not measured:
        return Picture("accuracy", title, expect, "There is neither a metrics.jsonl nor a model.pt that can be read.")
    target = evidence.profile.target * 100

    def paint(figure: Figure) -> None:
        axes = _axes(figure, "epoch", "test accuracy, %")
        at, values = _chosen(reported)
        axes.plot(at, values, color=LINES[0], marker="o", markersize=4, linewidth=1.4, label="reported")
        axes.axhline(target, color=INK, linestyle="--", linewidth=1.2, label="target")
        for rank, marker, (name, value) in zip((2, 1), "sD", measured.items(), strict=False):
            axes.plot(
                [max(1, len(reported))],
                [value],
                marker,
                color=LINES[rank],
                markersize=7,
                mfc="none",
                mew=1.8,
                label=name,
            )
        figure.legend(loc="outside upper center", ncols=2, handlelength=2)

    said = [f"reported {reported[-1]:.2f}% after {len(reported):,} epochs"] if len(reported) else []
    said += [f"{name} {value:.2f}%" for name, value in measured.items()]
    seen = f"Target {target:.2f}%; {'; '.join(said)}."
    return Picture("accuracy", title, expect, seen, _svg("accuracy", title, 250, paint))


def _updates(worker: Worker) -> Sequence[Update]:
    return worker.updates[:MAX_UPDATES]


def _highest(rates: list[float]) -> float:
    return max(rates[:64], default=math.nan)


def _finite(values: Iterable[float | None]) -> np.ndarray:
    """As float64; nan for what is absent, not finite, or too large to be drawn."""
    numbers = np.array([math.nan if value is None else value for value in values], dtype=float)
    numbers[~(np.abs(numbers) < TOO_LARGE)] = math.nan
    return numbers


def _left_out(curves: list[np.ndarray]) -> str:
    count = sum(int(np.isnan(curve).sum()) for curve in curves)
    return f" {count:,} values are absent, not finite or too large to draw." if count else ""


def _mean(values: np.ndarray) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if len(kept) else math.nan


def _words(value: float, form: str = ".4g") -> str:
    return format(value, form) if math.isfinite(value) else "none"


def _means(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most MAX_MEANS points: middle and mean of equally many consecutive updates each; updates count from 1."""
    groups = np.array_split(np.arange(len(curve)), max(1, min(len(curve), MAX_MEANS)))
    groups = [group for group in groups if len(group)]
    return np.array([group.mean() + 1 for group in groups]), np.array([_mean(curve[group]) for group in groups])


def _chosen(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most MAX_POINTS points of the curve itself, its first and last among them; updates count from 1."""
    chosen = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), MAX_POINTS)).astype(int))
    return chosen + 1, curve[chosen]


def _axes(figure: Figure, across: str, up: str) -> Axes:
    axes = figure.subplots()
    axes.set(xlabel=across, ylabel=up)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return axes


def _line(axes: Axes, rank: int, at: np.ndarray, values: np.ndarray) -> None:
    style, marker = STYLES[rank]
    every = (rank * len(at) // 24, max(1, len(at) // 6))
    axes.plot(
        at, values, style, color=LINES[rank], linewidth=1.4, marker=marker, markevery=every, markersize=4,
        label=f"worker {rank}",
    )  # fmt: skip


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, handlelength=2, columnspacing=1
    )


def _svg(name: str, label: str, height: float, paint: Callable[[Figure], None]) -> Markup:
    """What `paint` draws, `height` units high, as an `<svg>` element that says `label` to those who cannot see it."""
    with matplotlib.rc_context(SETTINGS | {"svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        paint(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(file.getvalue(), name, label)


def _inline(document: str, name: str, label: str) -> Markup:
    """An SVG document as an element of an HTML page: no names of its own outside, no addresses, the page's colours."""
    body = document[document.index(">", document.index("<svg")) + 1 :]
    box = re.search(r'viewBox="([\d. ]+)"', document).group(1)
    body = re.sub(r"<style.*?</style>", "", body, count=1, flags=re.DOTALL)  # would apply to the whole page
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"(?<=: )#fe00[0-9a-f]{2}", lambda color: f"var(--{VARIABLES.get(color.group(), 'ink')})", body)
    start = '<svg viewBox="{}" role="img" aria-label="{}" aria-describedby="{}">'
    return Markup(start).format(box, label, name) + Markup(body)
