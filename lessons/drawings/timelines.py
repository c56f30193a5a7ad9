"""Draws lanes of time: overlap, prefetching, a pipeline and its bubbles, strong and weak scaling."""

from benchmarks.cost_models.cost_model import exchanges
from lessons.drawings.shapes import MARGIN, WIDTH, Drawing

# These are the milliseconds of the example in lesson 04.
FORWARD, BACKWARD, EXCHANGE = 20.0, 40.0, 29.0
START = 1.0  # milliseconds; what each message costs, however small it is
GRADIENTS = 20  # exchanged one by one
GROUPS = 6


def overlap() -> Drawing:
    """One update with one exchange after the backward pass, with one for each gradient, and with six groups."""
    drawing = Drawing(
        "One update, three ways",
        "Lanes of time. Above, the exchange begins after the backward pass: forward, backward and exchange add up. In"
        " the middle, each gradient is exchanged as soon as it is ready. The exchange overlaps with the backward "
        "pass, but each message has a cost of its own. Below, the gradients go in six groups: few messages, and "
        "only the last group is left when the backward pass ends. The dashed lines are at 90, 71 and 66 milliseconds.",
        372,
    )
    ways = (
        ("One exchange, after the backward pass", _sent(1)),
        ("Each gradient when it is ready: overlap", _sent(GRADIENTS)),
        ("Six groups: overlap and fusion", _sent(GROUPS)),
    )
    longest = max(sent[-1][1] for _, sent in ways)
    scale = (WIDTH - 2 * MARGIN) / longest
    y = 20
    for words, sent in ways:
        drawing.text(MARGIN, y, words, anchor="start")
        drawing.labelled(MARGIN, y + 14, FORWARD * scale, 30, "computing", "forward", "small")
        drawing.labelled(MARGIN + FORWARD * scale, y + 14, BACKWARD * scale, 30, "computing", "backward", "small")
        for begin, end in sent:
            drawing.box(MARGIN + begin * scale, y + 50, (end - begin) * scale - 2, 26, "gradient", radius=3)
        drawing.text(MARGIN + sent[0][0] * scale - 8, y + 63, "exchange", "tint-gradient", "small", anchor="end")
        end = MARGIN + sent[-1][1] * scale
        drawing.wire(end, y + 8, end, y + 82, dashed=True)
        drawing.text(end - 6, y, f"{sent[-1][1]:.0f} ms", anchor="end")
        y += 108
    drawing.arrow(MARGIN, 338, WIDTH - MARGIN, 338)
    drawing.text(WIDTH / 2, 356, "time of one update", "muted", "small")
    return drawing


def _sent(messages: int) -> list[tuple[float, float]]:
    return exchanges(FORWARD, BACKWARD, EXCHANGE, START, messages)


PREPARE, UPDATE, PREFETCHED = 30.0, 45.0, 3  # milliseconds of an example, and the batches that are drawn


def prefetched(ahead: bool) -> tuple[list[float], list[float]]:
    """When each batch begins to be prepared, and to be used in an update (milliseconds).

    If `ahead` is set, the next batch is prepared while the network computes.
    """
    preparing, updating = [], []
    for number in range(PREFETCHED):
        begin, free = (updating[-1], updating[-1] + UPDATE) if number else (0.0, 0.0)
        preparing.append(begin if ahead else free)
        updating.append(max(preparing[-1] + PREPARE, free))
    return preparing, updating


def prefetching() -> Drawing:
    """Three batches, each prepared and then used in an update: in turn, and with prefetching."""
    ends = {ahead: prefetched(ahead)[1][-1] + UPDATE for ahead in (False, True)}
    drawing = Drawing(
        "Prefetching",
        f"Lanes of time for {PREFETCHED} batches. In turn, each batch is prepared and then used in an update: "
        f"{ends[False]:.0f} milliseconds in all. With prefetching, the next batch is prepared while the "
        f"network computes: {ends[True]:.0f} milliseconds in all. After the first batch, preparing takes no time of "
        "its own, because the update is longer.",
        302,
    )
    left = MARGIN + 66
    scale = (WIDTH - MARGIN - left) / ends[False]
    y = 20
    for ahead, words in ((False, "In turn"), (True, "With prefetching")):
        drawing.text(MARGIN, y, words, "bold", anchor="start")
        preparing, updating = prefetched(ahead)
        lanes = (("prepare", preparing, PREPARE, "card"), ("update", updating, UPDATE, "computing"))
        for lane, (name, begins, length, look) in enumerate(lanes):
            top = y + 16 + 38 * lane
            drawing.text(MARGIN, top + 16, name, "small", anchor="start")
            for number, begin in enumerate(begins, start=1):
                drawing.box(left + begin * scale, top, length * scale - 2, 32, look, radius=3)
                drawing.text(left + (begin + length / 2) * scale - 1, top + 16, f"{number}", "small")
        end = left + ends[ahead] * scale
        drawing.wire(end, y + 8, end, y + 92, dashed=True)
        drawing.text(end - 6, y, f"{ends[ahead]:.0f} ms", anchor="end")
        y += 126
    drawing.arrow(left, 270, WIDTH - MARGIN, 270)
    drawing.text((left + WIDTH - MARGIN) / 2, 288, "time (the numbers are batches)", "muted", "small")
    return drawing


STAGES, BATCHES = 4, 4


def idle_share(stages: int, batches: int) -> float:
    """The share of time in which the workers of a pipeline wait (Huang and others 2019, GPipe, section 2.3)."""
    return (stages - 1) / (batches + stages - 1)


def pipeline() -> Drawing:
    """A network cut into four stages, with one batch, and with the batch cut into four micro-batches."""
    shares = {batches: idle_share(STAGES, batches) for batches in (1, BATCHES)}
    drawing = Drawing(
        "A pipeline and its bubbles",
        "Four workers hold one quarter of the network each. With one batch, only one worker computes at a time: they "
        f"wait {shares[1]:.0%} of the time. With the batch cut into four micro-batches, a worker starts on the next "
        f"one while its right neighbour goes on with the last one: they wait {shares[BATCHES]:.0%} of the time.",
        416,
    )
    y = 20
    for batches in (1, BATCHES):
        name = "One batch" if batches == 1 else f"The same batch, in {batches} micro-batches"
        drawing.text(MARGIN, y, f"{name}: {shares[batches]:.0%} waiting", anchor="start")
        lanes = [_lane(stage, batches) for stage in range(STAGES)]
        _lanes(drawing, y + 16, lanes, total=2 * STAGES * 1.0, batches=batches)
        y += 196
    drawing.text(
        MARGIN, 402, "Only the forward pass is drawn. Stripes: the worker waits.", "muted", "small", anchor="start"
    )
    return drawing


def _lane(stage: int, batches: int) -> list[tuple[float, float, int]]:
    """The begin, the end and the number of each micro-batch on a stage. The whole batch takes a stage 2 units."""
    one = 2.0 / batches
    return [((stage + number) * one, (stage + number + 1) * one, number) for number in range(batches)]


def _lanes(drawing: Drawing, y: float, lanes: list, total: float, batches: int) -> None:
    left = MARGIN + 40
    scale = (WIDTH - MARGIN - left) / total
    last = max(lane[-1][1] for lane in lanes)
    for rank, lane in enumerate(lanes):
        top = y + rank * 40
        drawing.worker(MARGIN + 15, top + 16, rank)
        drawing.box(left, top, last * scale, 32, "waiting", radius=3)
        for begin, end, number in lane:
            words = f"{number + 1}" if batches > 1 else "batch"
            drawing.labelled(left + begin * scale, top, (end - begin) * scale, 32, f"worker{rank}", words, "small")


IMAGES = 8


def strong_and_weak() -> Drawing:
    """The same global batch on four workers, and four times the batch on four workers, beside one worker."""
    drawing = Drawing(
        "Strong and weak scaling",
        "One worker computes the gradient of eight images. Strong scaling: four workers share the same eight images, "
        "two each, and the update is shorter. Weak scaling: each of four workers has eight images. The update is as "
        "long as before, and it has used four times as many images.",
        494,
    )
    y = 20
    cases = (
        ("One worker: a batch of 8 images", 1, IMAGES),
        ("Strong scaling: the same 8 images, a shorter update", 4, IMAGES // 4),
        ("Weak scaling: 8 images each, 32 in the same time", 4, IMAGES),
    )
    for words, workers, each in cases:
        drawing.text(MARGIN, y, words, anchor="start")
        for rank in range(workers):
            top = y + 16 + rank * 38
            drawing.worker(MARGIN + 15, top + 15, rank)
            drawing.box(MARGIN + 40, top, each * 41 + 8, 30, "computing")
            for number in range(each):
                drawing.image(MARGIN + 53 + number * 41, top + 4, 22, f"worker{rank}")
            exchange = MARGIN + 52 + each * 41
            if workers > 1:
                drawing.box(exchange, top, 30, 30, "gradient")
        y += 16 + workers * 38 + 26
    drawing.text(MARGIN, y - 4, "Each purple box is the exchange. It does not get shorter.", "muted", anchor="start")
    return drawing
