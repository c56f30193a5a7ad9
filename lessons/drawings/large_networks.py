"""Draws what comes after this course's own program: a slow link, and networks that are larger than a GPU."""

from benchmarks.cost_models.cost_model import exchanges
from lessons.drawings.shapes import MARGIN, WIDTH, Drawing

BATCHES = 4  # the updates of each way
FORWARD, BACKWARD, EXCHANGE = 1.0, 2.0, 9.0  # units of time, on a link that is slow beside the computing
COMPUTING = FORWARD + BACKWARD
BUCKETS = 4
FEWER = 4  # the third way of `slow_link` sends a quarter of the bytes


def ways() -> dict[str, list[tuple[str, float, float]]]:
    """Four ways to train on four batches. Each has boxes: whether it computes or exchanges, its begin, and its end."""
    return {
        "One exchange after each batch": _repeated(_one_group(EXCHANGE)),
        "Earlier: in four groups, overlapped": _repeated(_overlapped()),
        "Fewer bytes: a quarter of them": _repeated(_one_group(EXCHANGE / FEWER)),
        "Fewer exchanges: one after four batches": _once(),
    }


def end(boxes: list[tuple[str, float, float]]) -> float:
    """The end of the last box."""
    return max(last for _, _, last in boxes)


def slow_link() -> Drawing:
    """Four batches on a slow link: as it is, with overlap, with fewer bytes, and with fewer exchanges."""
    ends = {name: end(boxes) for name, boxes in ways().items()}
    first = next(iter(ends.values()))
    told = "; ".join(f"{name}: {last / first:.0%} of the first way's time" for name, last in ends.items())
    drawing = Drawing(
        "Four batches on a slow link",
        "Lanes of time. Grey boxes compute a batch, and purple boxes are exchanges. An exchange takes three times as "
        f"long as computing. {told}.",
        344,
    )
    scale = (WIDTH - 2 * MARGIN - 52) / first
    y = 20
    for name, boxes in ways().items():
        drawing.text(MARGIN, y, name, anchor="start")
        for look, begin, last in boxes:
            top = y + 14 if look == "computing" else y + 37
            drawing.box(MARGIN + begin * scale, top, (last - begin) * scale - 1, 21, look, radius=3)
        drawing.text(MARGIN + ends[name] * scale + 8, y + 36, f"{ends[name] / first:.0%}", "bold", anchor="start")
        y += 76
    drawing.arrow(MARGIN, 316, WIDTH - MARGIN, 316)
    drawing.text(WIDTH / 2, 332, "time of four batches", "muted", "small")
    return drawing


def _one_group(exchange: float) -> list[tuple[str, float, float]]:
    return [("computing", 0, COMPUTING), ("gradient", COMPUTING, COMPUTING + exchange)]


def _overlapped() -> list[tuple[str, float, float]]:
    sent = exchanges(FORWARD, BACKWARD, EXCHANGE, 0, BUCKETS)
    return [("computing", 0, COMPUTING), *(("gradient", begin, last) for begin, last in sent)]


def _repeated(update: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    length = end(update)
    starts = [number * length for number in range(BATCHES)]
    return [(look, start + begin, start + last) for start in starts for look, begin, last in update]


def _once() -> list[tuple[str, float, float]]:
    computed = [("computing", number * COMPUTING, (number + 1) * COMPUTING) for number in range(BATCHES)]
    return [*computed, ("gradient", BATCHES * COMPUTING, BATCHES * COMPUTING + EXCHANGE)]


WORKERS = 4
FORGET = "each forgets the quarters of the others"
MOMENTS = (  # what each worker holds, whether this is the whole layer, and what happens until the next moment
    ("Each worker holds a quarter of the layer's weights.", False, "all-gather"),
    ("Forward pass: each worker holds the whole layer.", True, FORGET),
    ("Other layers compute. Each worker holds its quarter again.", False, "all-gather"),
    ("Backward pass: each worker holds the whole layer.", True, "reduce-scatter"),
    ("Each holds the mean gradient of its own quarter.", False, ""),
)


def gather_and_scatter() -> Drawing:
    """One layer in stage 3 of ZeRO: which quarters of its weights each of four workers holds, and when."""
    drawing = Drawing(
        "One layer in stage 3 of ZeRO",
        " ".join(f"{words} {'Then: ' + after + '.' if after else ''}".strip() for words, _, after in MOMENTS),
        506,
    )
    y = 20
    for words, whole, after in MOMENTS:
        drawing.text(MARGIN, y, words, "small", anchor="start")
        for rank in range(WORKERS):
            x = MARGIN + rank * (WIDTH - 2 * MARGIN) / WORKERS
            drawing.worker(x + 14, y + 34, rank, radius=12)
            for quarter in range(WORKERS):
                held = whole or quarter == rank
                look = "gradient" if not after else f"worker{quarter}"
                drawing.box(x + 32 + quarter * 18, y + 24, 16, 20, look if held else "card", radius=2)
        y += 62
        if after:
            look = "card" if after == FORGET else "gradient"
            drawing.box(MARGIN, y - 4, WIDTH - 2 * MARGIN, 24, look, radius=4)
            drawing.text(WIDTH / 2, y + 8, after, "small", "muted" if look == "card" else "on-gradient")
            y += 42
    return drawing


HOSTS = ("alpha: images 0 to 31", "beta: images 32 to 63")


def mesh() -> Drawing:
    """Two hosts with four GPUs each: the GPUs of a host divide each layer, and pairs across hosts average gradients."""
    drawing = Drawing(
        "A mesh of eight GPUs",
        "Two hosts have four GPUs each. The four workers of a host have the same images, and one part of each layer "
        "each. They exchange activations in every layer. Ranks 0 and 4, 1 and 5, 2 and 6, and 3 and 7 have the same "
        "part and other images. They average their gradients once an update.",
        292,
    )
    for row, name in enumerate(HOSTS):
        top = 14 + row * 158
        drawing.host(MARGIN, top, WIDTH - 2 * MARGIN, 106, name)
        places = [MARGIN + 62 + part * 111 for part in range(WORKERS)]
        drawing.wire(places[0], top + 52, places[-1], top + 52, look="computing", width=5)
        for part, x in enumerate(places):
            if row == 0:
                drawing.wire(x, top + 106, x, top + 158, look="gradient", width=2.5)
            drawing.station(x, top + 52, f"{part + row * WORKERS}", f"worker{part}")
            drawing.text(x, top + 84, f"part {part}", "small")
    drawing.label(WIDTH / 2, 146, "mean of the gradients, once an update", 260)
    drawing.label(WIDTH / 2 + 60, 28, "activations, in every layer", 190)
    return drawing
