"""Draws how workers exchange gradients: one update, a server beside a ring, and how a deadlock comes about."""

from benchmarks.cost_models.ring_all_reduce import traffic
from lessons.drawings.shapes import MARGIN, WIDTH, Drawing

WORKERS = 4
COLUMNS = [MARGIN + (rank + 0.5) * (WIDTH - 2 * MARGIN) / WORKERS for rank in range(WORKERS)]


def one_update() -> Drawing:
    """Four workers: shards of the data, the same weights, four gradients, one mean, the same weights again."""
    drawing = Drawing(
        "One update of four workers",
        "The data set is cut into four shards, one for each worker. All workers have the same weights w. Each "
        "computes a gradient on its own images. The workers exchange the gradients, and all get the same mean. Each "
        "subtracts the same mean times the learning rate, so all have the same weights again.",
        532,
    )
    _heading(drawing, 18, "Each worker has its own shard of the images.")
    for rank, x in enumerate(COLUMNS):
        for number in range(10):
            drawing.image(x - 47 + number % 5 * 19, 36 + number // 5 * 19, 16, f"worker{rank}")
        drawing.arrow(x, 78, x, 92)
    _heading(drawing, 108, "It takes a batch from it. All start with the same weights.")
    for rank, x in enumerate(COLUMNS):
        drawing.box(x - 50, 124, 100, 84, "card", radius=8)
        drawing.worker(x - 26, 148, rank)
        drawing.weights(x + 18, 148)
        for number in range(4):
            drawing.image(x - 37 + number * 19, 182, 16, f"worker{rank}")
        drawing.arrow(x, 212, x, 226)
    _heading(drawing, 242, "It computes a gradient. The four gradients differ.")
    for rank, x in enumerate(COLUMNS):
        drawing.gradient(x, 272, f"g{'₀₁₂₃'[rank]}", 46)
        drawing.arrow(x, 288, x, 304)
    drawing.box(MARGIN, 308, WIDTH - 2 * MARGIN, 46, "gradient")
    drawing.text(WIDTH / 2, 331, "all-reduce:  g = (g₀ + g₁ + g₂ + g₃) / 4", "on-gradient")
    for x in COLUMNS:
        drawing.arrow(x, 358, x, 372)
        drawing.gradient(x, 390)
        drawing.arrow(x, 406, x, 420)
    _heading(drawing, 436, "Each gets the same mean, and takes the same step.")
    for rank, x in enumerate(COLUMNS):
        drawing.box(x - 50, 452, 100, 44, "card", radius=8)
        drawing.worker(x - 26, 474, rank)
        drawing.weights(x + 18, 474, "w′")
    drawing.text(WIDTH / 2, 514, "w′ = w − rate · g", "math")
    return drawing


def _heading(drawing: Drawing, y: float, words: str) -> None:
    drawing.text(WIDTH / 2, y, words, "muted")


def server_and_ring() -> Drawing:
    """Where the bytes go when four workers average their gradients, with one server and in a ring."""
    _, sent = traffic(WORKERS, 1)
    others = WORKERS - 1
    drawing = Drawing(
        "One server, or a ring",
        "Four workers average gradients. Worker 0 is also the server. Each other worker has a thin line to it, and all "
        "three lines go through one thick line at worker 0. In a ring there is no server. The "
        "four lines of the ring are equally thick, and half as thick as the line of the server.",
        282,
    )
    half = WIDTH / 2
    drawing.wire(half, 44, half, 252, dashed=True)
    drawing.text(half / 2, 22, "One server", "bold")
    drawing.text(half * 1.5, 22, "A ring", "bold")
    hub = half / 2, 132
    drawing.wire(half / 2, 84, *hub, look="gradient", width=2 * others)
    drawing.worker(half / 2, 70, 0)
    drawing.text(half / 2 + 22, 70, "the server", "muted", "small", anchor="start")
    for rank in range(1, WORKERS):
        x = half / 2 + (rank - WORKERS / 2) * 68
        drawing.wire(*hub, x, 205, look="gradient", width=2)
        drawing.worker(x, 216, rank)
    drawing.text(half / 2, 248, "All gradients pass one link.", "muted")
    places = [(1.5 * half, 70), (1.5 * half + 72, 140), (1.5 * half, 210), (1.5 * half - 72, 140)]
    for rank, (x, y) in enumerate(places):
        x1, y1 = places[(rank + 1) % WORKERS]
        dx, dy = (x1 - x) * 0.23, (y1 - y) * 0.23
        drawing.arrow(x + dx, y + dy, x1 - dx, y1 - dy, "gradient", width=2 * sent)
    for rank, (x, y) in enumerate(places):
        drawing.worker(x, y, rank)
    drawing.text(half * 1.5, 248, "All links work at once.", "muted")
    drawing.text(half, 272, "A line is as thick as the bytes that it carries each way.", "muted", "small")
    return drawing


def deadlock() -> Drawing:
    """One worker calls a collective that the others never call, and each waits for the other."""
    drawing = Drawing(
        "How a deadlock comes about",
        "Both workers have exchanged their gradients. Then worker 0 alone calls an all-reduce of the loss, because it"
        " stands below `if rank == 0`. Worker 1 goes on to the all-reduce of the next gradients. Each all-reduce "
        "waits until every worker has called it, so both wait for ever.",
        250,
    )
    for rank, (words, name) in enumerate(
        (("if rank == 0: all-reduce(loss)", "loss"), ("goes on with the next update", "g"))
    ):
        y = 54 + rank * 88
        drawing.worker(28, y, rank)
        drawing.text(54, y - 34, f"Worker {rank}: {words}", "muted", anchor="start")
        drawing.labelled(54, y - 18, 76, 36, "computing", "computes", "small")
        drawing.labelled(132, y - 18, 98, 36, "gradient", "all-reduce(g)", "small")
        drawing.box(232, y - 18, 236, 36, "waiting")
        drawing.label(350, y, f"all-reduce({name}): waits for ever", 214)
    drawing.arrow(54, 186, 424, 186)
    drawing.text(468, 186, "time", "muted", "small", anchor="end")
    drawing.text(28, 216, "An all-reduce ends only when every worker has called it.", anchor="start")
    drawing.text(28, 237, "Worker 1 never calls the all-reduce of the loss.", anchor="start")
    return drawing


def three_steps() -> Drawing:
    """An all-reduce of two hosts in three steps, so that only one sum of each host crosses the slow link."""
    drawing = Drawing(
        "An exchange in three steps",
        "Two hosts with two workers each. First, worker 1 sends its gradient to worker 0, and worker 3 to worker 2. "
        "Each host now has one sum. Second, workers 0 and 2 exchange these two sums over the slow link. Third, worker "
        "0 sends the result to worker 1, and worker 2 to worker 3.",
        372,
    )
    steps = (
        ("1. Add up inside each host: fast links", ((1, 0), (3, 2))),
        ("2. Exchange one sum for each host: the slow link", ((0, 2), (2, 0))),
        ("3. Hand the result out inside each host: fast links", ((0, 1), (2, 3))),
    )
    places = {1: 60, 0: 170, 2: 310, 3: 420}  # the x of each worker, with the two that exchange in the middle
    for number, (words, sends) in enumerate(steps):
        y = 18 + 122 * number
        drawing.text(MARGIN, y, words, anchor="start")
        drawing.box(MARGIN + 8, y + 16, 204, 78, "card", radius=8)
        drawing.box(WIDTH - MARGIN - 212, y + 16, 204, 78, "card", radius=8)
        for rank, x in places.items():
            drawing.worker(x, y + 55, rank)
        for begin, end in sends:
            side = 1 if places[end] > places[begin] else -1
            shift = 8 * side if number == 1 else 0  # two arrows, one for each direction
            drawing.arrow(
                places[begin] + 20 * side, y + 55 + shift, places[end] - 20 * side, y + 55 + shift,
                look="gradient", width=2.5,
            )  # fmt: skip
    return drawing
