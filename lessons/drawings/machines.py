"""Draws machines: how fast bytes move between them, what fills their memory, and what happens when one fails."""

from benchmarks.cost_models.hardware import LINKS
from lessons.drawings.shapes import MARGIN, WIDTH, Drawing

LARGEST = 150  # units; the side of the largest square
INSIDE = ("memory", "nvlink", "pcie")  # the links inside a host; the others are between hosts
NETWORK = 25.6e6  # weights of a ResNet-50 (He and others 2015)


def bandwidths() -> Drawing:
    """A square for each memory and link. Its area is the bandwidth."""
    fastest = max(link.bytes_per_s for link in LINKS.values())
    sides = {name: LARGEST * (link.bytes_per_s / fastest) ** 0.5 for name, link in LINKS.items()}
    rows = {name: max(side, 30) + 16 for name, side in sides.items()}
    told = "; ".join(f"{link.name} {_rate(link.bytes_per_s)}, {_time(link.bytes_per_s)}" for link in LINKS.values())
    inside = sum(rows[name] for name in INSIDE) + 36
    drawing = Drawing(
        "How fast bytes move",
        "Squares, to scale: the area of each is the bandwidth of a memory or a link. Beside each stands the time in "
        f"which the gradients of a ResNet-50, 102 MB, pass through it once. {told}.",
        78 + inside + sum(rows[name] for name in LINKS if name not in INSIDE),
    )
    drawing.text(MARGIN, 20, "The area of each square is its bandwidth.", "muted", anchor="start")
    drawing.host(MARGIN - 4, 36, WIDTH - 2 * MARGIN + 8, inside, "inside a host")
    drawing.text(WIDTH - MARGIN - 6, 50, "time of 102 MB", "muted", "small", anchor="end")
    y = 66
    for name, link in LINKS.items():
        if name not in INSIDE and y < inside + 50:
            y = inside + 66
            drawing.text(MARGIN + 6, y - 14, "between hosts", "muted", "small", anchor="start")
        side, middle = sides[name], y + rows[name] / 2 - 8
        corner = MARGIN + 8 + (LARGEST - side) / 2, middle - side / 2
        drawing.box(*corner, side, side, "gradient", radius=min(3, side / 5))
        drawing.text(184, middle - 9, link.name, anchor="start")
        drawing.text(184, middle + 9, _rate(link.bytes_per_s), "muted", "small", anchor="start")
        drawing.text(WIDTH - MARGIN - 6, middle, _time(link.bytes_per_s), "bold", anchor="end")
        y += rows[name]
    return drawing


def _rate(speed: float) -> str:
    return f"{speed / 1e9:,g} GB/s" if speed >= 1e9 else f"{speed / 1e6:,g} MB/s"


def _time(speed: float) -> str:
    milliseconds = 4 * NETWORK / speed * 1000
    return f"{milliseconds:.2g} ms" if milliseconds < 100 else f"{milliseconds:.0f} ms"


# The bytes that a weight takes, with 32-bit numbers and Adam: itself, its gradient, and Adam's two means.
PARTS = {"weights": 4, "gradients": 4, "Adam's two means": 8}
SHARDED = {  # which of these parts each method shards over the workers
    "one worker": (),
    "data parallel, 4 workers": (),
    "ZeRO stage 1": ("Adam's two means",),
    "ZeRO stage 2": ("Adam's two means", "gradients"),
    "ZeRO stage 3, FSDP": ("Adam's two means", "gradients", "weights"),
}
LOOKS = {"weights": "weights", "gradients": "gradient", "Adam's two means": "computing"}
WORKERS = 4


def bytes_per_weight(method: str) -> dict[str, float]:
    """The bytes of memory that each part takes on a worker, for each weight of the network."""
    return {part: size / (WORKERS if part in SHARDED[method] else 1) for part, size in PARTS.items()}


def memory() -> Drawing:
    """What fills a worker's memory for each weight: alone, with data parallelism, and with three stages of ZeRO."""
    totals = {method: sum(bytes_per_weight(method).values()) for method in SHARDED}
    told = "; ".join(f"{method} {total:g} bytes" for method, total in totals.items())
    drawing = Drawing(
        "What fills a worker's memory",
        "Bars, to scale: bytes for each weight of the network, on one worker of four, with 32-bit numbers and Adam. "
        f"{told}. The activations come on top, and none of these methods shares them.",
        382,
    )
    drawing.text(MARGIN, 20, "Bytes on each worker, for each weight of the network", "muted", anchor="start")
    scale, x = (WIDTH - 2 * MARGIN - 84) / sum(PARTS.values()), MARGIN
    for part, size in PARTS.items():
        drawing.labelled(x, 38, size * scale - 4, 34, LOOKS[part], part, "small")
        x += size * scale
    y = 96
    for method in SHARDED:
        drawing.text(MARGIN, y, method, anchor="start")
        x = MARGIN
        for part, size in bytes_per_weight(method).items():
            drawing.labelled(x, y + 12, size * scale, 22, LOOKS[part], f"{size:g}", "small")
            x += size * scale
        drawing.text(x + 8, y + 23, f"{totals[method]:g} bytes", "bold", anchor="start")
        y += 52
    drawing.text(MARGIN, y + 6, "Activations come on top. They grow with the batch.", "muted", anchor="start")
    return drawing


UPDATE = 25.0  # units; the width of an update in the drawing of an elastic run
KILLED_IN, EVERY = 6, 3  # the update in which a worker is killed, and the updates from commit to commit


def elastic_run() -> Drawing:
    """Four workers on two hosts. One is killed, two go on from the last commit, and later there are four again."""
    drawing = Drawing(
        "An elastic run that loses a host for a while",
        "Lanes of time of four workers, two on the host alpha and two on the host beta. All four make updates 1 to 5, "
        "with a commit after update 3. In update 6 worker 3 is killed, and both workers of beta end. The workers of "
        "alpha wait. Then they go back to the commit and make updates 4 to 9, with a commit after 6 and after 9. New "
        "workers of beta have started meanwhile. They come in at the last commit, and all four make updates 10 to 12.",
        322,
    )
    left = MARGIN + 46
    pause = left + (KILLED_IN - 1) * UPDATE + 12, left + (KILLED_IN - 1) * UPDATE + 50
    resumed = [(EVERY + 1 + number, pause[1] + number * UPDATE) for number in range(9)]
    begins = [(number, left + (number - 1) * UPDATE) for number in range(1, KILLED_IN)]
    joined = resumed[2 * EVERY][1]
    for host, y in (("alpha", 34), ("beta", 156)):
        drawing.host(MARGIN - 6, y, WIDTH - 2 * MARGIN + 12, 112, host)
    for rank in range(4):
        y = 56 + rank * 42 + (38 if rank > 1 else 0)
        drawing.worker(MARGIN + 18, y + 16, rank)
        again = resumed if rank < 2 else resumed[2 * EVERY :]
        for number, x in [*begins, *again]:
            drawing.labelled(x, y, UPDATE - 2, 32, f"worker{rank}", f"{number}", "small")
        if rank < 2:
            drawing.box(pause[0] - 12, y, pause[1] - pause[0] + 10, 32, "waiting", radius=3)
        else:
            drawing.box(joined - 66, y, 64, 32, "card")
            drawing.text(joined - 34, y + 16, "start", "small")
    for x in (begins[EVERY][1], resumed[EVERY][1], joined):
        drawing.wire(x - 1, 24, x - 1, 276, look="gradient", width=2, dashed=True)
        drawing.text(x, 14, "commit", "tint-gradient", "small")
    drawing.text(pause[0] + 4, 236, "killed", "bold", "small", anchor="start")
    drawing.text(MARGIN, 302, "Stripes: the workers wait. The numbers are updates.", "muted", "small", anchor="start")
    return drawing
