"""Draws the shapes of all drawings with their names."""

from lessons.drawings.shapes import MARGIN, Drawing

ROW = 54


def shapes() -> Drawing:
    """Each shape beside its name."""
    drawing = Drawing(
        "The shapes of the drawings",
        "A worker is a disc with its rank. An image is a small picture. A shard is a block of images in its worker's "
        "colour. Weights are a dark square. A gradient is a purple box with round ends. Computing is a grey box, an "
        "exchange a purple box, and waiting a striped box. A host is a pale box that holds others. A link is a line.",
        ROW * 9 + 16,
    )
    x, words = MARGIN + 80, MARGIN + 176
    rows = (
        ("a worker, with its rank", lambda y: [drawing.worker(x - 54 + 36 * rank, y, rank) for rank in range(4)]),
        ("an image", lambda y: drawing.image(x - 11, y - 11, 22, "worker0")),
        ("a shard: the images of worker 2", lambda y: _shard(drawing, x, y)),
        ("the weights of a network", lambda y: drawing.weights(x, y)),
        ("a gradient", lambda y: drawing.gradient(x, y)),
        ("a worker computes", lambda y: drawing.labelled(x - 60, y - 15, 120, 30, "computing", "forward", "small")),
        ("workers exchange gradients", lambda y: drawing.box(x - 60, y - 15, 120, 30, "gradient")),
        ("a worker waits", lambda y: drawing.box(x - 60, y - 15, 120, 30, "waiting")),
        ("two hosts, with a link", lambda y: _hosts(drawing, x, y)),
    )
    for number, (name, draw) in enumerate(rows):
        y = 8 + ROW * (number + 0.5)
        draw(y)
        drawing.text(words, y, name, anchor="start")
    return drawing


def _shard(drawing: Drawing, x: float, y: float) -> None:
    for number in range(10):
        drawing.image(x - 47 + number % 5 * 19, y - 18 + number // 5 * 19, 16, "worker2")


def _hosts(drawing: Drawing, x: float, y: float) -> None:
    drawing.wire(x - 20, y, x + 20, y, width=3)
    drawing.box(x - 80, y - 20, 60, 40, "card", radius=8)
    drawing.box(x + 20, y - 20, 60, 40, "card", radius=8)
    drawing.text(x - 50, y, "alpha", "small")
    drawing.text(x + 50, y, "beta", "small")
