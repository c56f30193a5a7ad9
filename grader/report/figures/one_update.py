"""Draws from Horovod's timeline when each gradient of one update was exchanged."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from grader.grading.evidence import Evidence
from grader.report import timeline
from grader.report.figures.picture import Picture, new_axes, patch_legend, to_svg

MAX_ROWS, MAX_BARS = 32, 1_000  # so many tensors and events are drawn, which keeps the picture readable
MAX_LABEL = 25  # characters; a longer name of a tensor would take the space of the bars
KINDS = ("compute only", "wait for others", "all-reduce", "copy", "transfer")  # a kind is drawn over earlier ones
COMPUTE, WAIT, ALLREDUCE, COPY, TRANSFER = range(len(KINDS))
PREFIXES = {  # the names of Horovod's phases begin like this; any other phase counts as all-reduce
    WAIT: ("NEGOTIATE", "WAIT", "QUEUE"),
    TRANSFER: ("GLOO", "NCCL", "MPI", "CCL"),
    COPY: ("MEMCPY", "INIT", "ALLOCATE", "COPY"),
}


def draw(evidence: Evidence) -> Picture:
    """Draw Horovod's timeline of one update, with one row per tensor."""
    title = "One update in Horovod's timeline"
    expected = "Every gradient is exchanged once: as soon as all workers have it, or together with its group."
    events = timeline.one_update(timeline.read(evidence.timeline))
    if not events:
        unreadable = "There is none that can be read: Horovod's timeline is on for a few updates only."
        return Picture("timeline", title, expected, unreadable)
    tensors = _tensors(events)[:MAX_ROWS]
    drawn = [event for event in events if _kind(event) == COMPUTE or event.tensor in tensors][:MAX_BARS]

    def paint(figure: Figure) -> None:
        axes, start = new_axes(figure, "ms", ""), _start(drawn)
        for kind in range(len(KINDS)):
            _bars(axes, [event for event in drawn if _kind(event) == kind], kind, start, tensors)
        axes.set_yticks(range(len(tensors)), [_short(name) for name in tensors], fontsize=8.8)
        axes.set_ylim(len(tensors) - 0.4, -0.6)
        axes.grid(axis="x")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        patch_legend(figure, _kind_patches(sorted(set(map(_kind, drawn)))), "outside upper center")

    height = 90 + 11 * max(4, len(tensors))
    return Picture("timeline", title, expected, _observe(events), to_svg("timeline", title, height, paint))


def _kind(event: timeline.Event) -> int:
    """Return the index of the event's kind in KINDS."""
    if event.phase == timeline.COMPUTE:
        return COMPUTE
    return next((kind for kind, prefixes in PREFIXES.items() if event.phase.startswith(prefixes)), ALLREDUCE)


def _start(events: list[timeline.Event]) -> float:
    return min(event.start for event in events)


def _tensors(events: list[timeline.Event]) -> list[str]:
    return list(dict.fromkeys(event.tensor for event in events if event.phase != timeline.COMPUTE))


def _bars(axes: Axes, events: list[timeline.Event], kind: int, start: float, tensors: list[str]) -> None:
    """Draw the events of one kind in their tensors' rows. Computing is for all tensors and goes through all rows."""
    rows = [(len(tensors) - 1) / 2 if kind == COMPUTE else tensors.index(event.tensor) for event in events]
    bars = axes.barh(
        rows, [event.seconds * 1000 for event in events], height=len(tensors) + 0.2 if kind == COMPUTE else 0.8,
        left=[(event.start - start) * 1000 for event in events],
    )  # fmt: skip
    for number, bar in enumerate(bars):
        bar.set_gid(f"phase-{kind}-{number}")


def _kind_patches(kinds: list[int]) -> dict[str, Patch]:
    return {f"phase-{kind}": Patch(edgecolor="black", linewidth=0.6, label=KINDS[kind]) for kind in kinds}


def _short(name: str) -> str:
    """Return the name in ASCII. A long name keeps its end, because the end tells tensors apart."""
    name = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in name)
    return name if len(name) <= MAX_LABEL else "..." + name[3 - MAX_LABEL :]


def _observe(events: list[timeline.Event]) -> str:
    duration = max(event.end for event in events) - _start(events)
    computed = sum(event.seconds for event in events if event.phase == timeline.COMPUTE)
    before = f", of which {computed * 1000:,.0f} ms before the first gradient" if computed else ""
    count = len(_tensors(events))
    rest = f"; the first {MAX_ROWS} are drawn" if count > MAX_ROWS else ""
    return f"{duration * 1000:,.0f} ms on worker 0{before}. Tensors exchanged: {count:,}{rest}."
