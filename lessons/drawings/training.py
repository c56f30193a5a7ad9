"""Draws what workers learn from: the batch of batch normalisation, warmup and decay, the noise of the gradient."""

from fractions import Fraction

import numpy as np

from benchmarks.methods.sgd_noise import spread
from cifar.schedule import decay_factor, warmup_factor
from lessons.drawings.shapes import MARGIN, WIDTH, Drawing

WORKERS, EACH = 4, 4


def batch_norm() -> Drawing:
    """The images over which batch normalisation takes its mean: local, ghost and synchronised."""
    drawing = Drawing(
        "Over which images batch normalisation takes its mean",
        "Three ways, with 16 images in an update. Ghost: one worker cuts its batch of 16 into four groups of 4, with "
        "a mean for each group. Local: four workers have 4 images and a mean of their own each. Synchronised: four "
        "workers have 4 images each, and exchange their means in each layer, so that all use one mean of 16 images.",
        346,
    )
    y = 20
    for words, synchronised, workers in (
        ("Ghost: one worker, groups of 4 images", False, 1),
        ("Local: each worker takes its own mean", False, WORKERS),
        ("Synchronised: one mean of all 16 images", True, WORKERS),
    ):
        drawing.text(MARGIN, y, words, anchor="start")
        width = (WIDTH - 2 * MARGIN) / WORKERS
        if workers == 1:
            drawing.box(MARGIN, y + 14, WIDTH - 2 * MARGIN, 78, "card", radius=8)
            drawing.worker(MARGIN + 20, y + 34, 0, 13)
        for group in range(WORKERS):
            x, rank = MARGIN + group * width, group if workers > 1 else 0
            if workers > 1:
                drawing.box(x, y + 14, width - 6, 78, "card", radius=8)
                drawing.worker(x + 20, y + 34, rank, 13)
            for number in range(EACH):
                drawing.image(x + 46 + number % 2 * 22, y + 22 + number // 2 * 22, 18, f"worker{rank}")
            if not synchronised:
                drawing.labelled(x + 24, y + 68, width - 54, 20, "weights", f"μ{'₀₁₂₃'[group]}", "math", "small")
        if synchronised:
            drawing.labelled(
                MARGIN + 24, y + 68, WIDTH - 2 * MARGIN - 54, 20, "gradient", "μ, exchanged", "math", "small"
            )
        y += 112
    return drawing


ROWS, COLUMNS = 4, 40  # the images of an epoch, as 160 squares of 64 images each
PIXEL = 10.8  # units


def steps() -> Drawing:
    """The updates of an epoch: of one worker, and of four."""
    drawing = Drawing(
        "The updates of an epoch",
        "Two rows of the same length stand for the same images. One worker changes its weights 160 times: 160 small "
        "boxes. Four workers use four times as many images in an update, so they change their weights 40 times: 40 "
        "large boxes, each with a part of every worker.",
        184,
    )
    left = MARGIN + 4
    drawing.worker(left + 12, 24, 0, 13)
    drawing.text(left + 32, 24, "160 updates of 64 images", anchor="start")
    for number in range(ROWS * COLUMNS):
        x, y = left + number // ROWS * PIXEL, 44 + number % ROWS * PIXEL
        drawing.box(x, y, PIXEL - 2, PIXEL - 2, "worker0", radius=1)
    for rank in range(ROWS):
        drawing.worker(left + 12 + 28 * rank, 112, rank, 13)
    drawing.text(left + 32 + 28 * (ROWS - 1), 112, "40 updates of 4 × 64 images", anchor="start")
    for number in range(COLUMNS):
        x = left + number * PIXEL
        for rank in range(ROWS):
            drawing.box(
                x,
                132 + rank * PIXEL,
                PIXEL - 2,
                PIXEL + 0.5 * (rank < ROWS - 1) - 2 * (rank == ROWS - 1),
                f"worker{rank}",
                radius=0,
            )
    return drawing


UPDATES, WARMUP, DECAY, SIZE = 100, 25, 60, 4


def warmup_and_decay() -> Drawing:
    """The rate over the updates: constant, scaled without warmup, and scaled with warmup and decay."""
    drawing = Drawing(
        "Warmup and decay",
        f"Three lines: the learning rate over the updates. The base rate stays low. The scaled rate is {SIZE} times as"
        " high from the first update on. With warmup it rises from the base rate to the scaled rate during a quarter "
        "of the updates, stays there, and then decays to 0.",
        272,
    )
    left, right, low, high = 92, WIDTH - MARGIN - 8, 222, 40

    def points(factors: list[float]) -> list[float]:
        places = [
            (left + at / UPDATES * (right - left), low - factor / SIZE * (low - high))
            for at, factor in enumerate(factors)
        ]
        return [number for place in places for number in place]

    drawing.arrow(left, low, right + 6, low)
    drawing.arrow(left, low, left, high - 24)
    drawing.text(left - 8, high - 18, "rate", "muted", anchor="end")
    drawing.text(right, low + 18, "updates", "muted", anchor="end")
    drawing.text(left - 8, high, "scaled", anchor="end")
    drawing.text(left - 8, low - (low - high) / SIZE, "base", anchor="end")
    drawing.wire(*points([1.0] * (UPDATES + 1)), width=2.5, dashed=True)
    drawing.wire(*points([float(SIZE)] * (UPDATES + 1)), width=2.5, dashed=True)
    both = [warmup_factor(at, WARMUP, SIZE) * decay_factor(at, DECAY, UPDATES) for at in range(UPDATES + 1)]
    drawing.wire(*points(both), look="worker1", width=4)
    drawing.text(left + 78, 128, "warmup", "tint-worker1", "bold", anchor="start")
    drawing.text(right - 100, 128, "decay", "tint-worker1", "bold", anchor="end")
    drawing.text(
        MARGIN, 256, "Short steps at first, long ones, and short ones at the end.", "muted", "small", anchor="start"
    )
    return drawing


CURVATURES, NOISE, BEGIN = np.array([1.0, 4.0]), 40.0, np.array([-2.6, 1.1])
CASES = (("rate 0.05", "batch 16", 0.05, 16), ("rate 0.2", "batch 16", 0.2, 16), ("rate 0.2", "batch 64", 0.2, 64))


def noise_ball() -> Drawing:
    """The path of the weights in a valley, and the cloud in which they end, for three pairs of rate and batch."""
    spreads = [spread(rate, batch, CURVATURES[0], NOISE) for _, _, rate, batch in CASES]
    drawing = Drawing(
        "Where the noise lets the weights end",
        "Three valleys seen from above. The weights walk to the bottom, and then move about it in a cloud. With a "
        f"rate of 0.05 and a batch of 16, the cloud is small. With a rate of 0.2, it is {spreads[1] / spreads[0]:.1f} "
        f"times as wide. With a rate of 0.2 and a batch of 64, it is {spreads[2] / spreads[0]:.1f} times as wide as "
        "the first, and the walk takes a quarter of the updates.",
        272,
    )
    width, scale = (WIDTH - 2 * MARGIN) / 3, 23
    for index, (rate_words, batch_words, rate, batch) in enumerate(CASES):
        middle = MARGIN + (index + 0.5) * width
        for radius in (1.0, 2.0, 3.0):
            drawing.ellipse(middle, 122, radius * scale, radius * scale / 2 * 1.35)
        path = _path(rate, batch, 160)
        walk = int(3.2 / rate)
        points = [(middle + x * scale, 122 + y * scale * 1.35) for x, y in path]
        for x, y in points[walk:]:
            drawing.dot(x, y, 2, "gradient")
        drawing.wire(*[number for point in points[: walk + 1] for number in point], look="worker1", width=2)
        drawing.dot(*points[0], 4.5, "worker1")
        drawing.text(middle, 20, rate_words, "bold")
        drawing.text(middle, 40, batch_words, "bold")
        drawing.text(middle, 204, f"{walk} updates", "tint-worker1")
        drawing.text(middle, 226, ("small cloud", "large cloud", "small cloud")[index], "tint-gradient")
    drawing.text(WIDTH / 2, 254, "Brown: the way to the bottom. Purple: the weights after that.", "muted")
    return drawing


def _path(rate: float, batch: int, updates: int) -> np.ndarray:
    """The weights of SGD in a quadratic valley: the gradient's noise falls with the root of the batch."""
    draw, place = np.random.default_rng(3), BEGIN.copy()
    places = [place.copy()]
    for _ in range(updates):
        place -= rate * (CURVATURES * place + draw.normal(size=2) * np.array([1.0, 1.0]) * np.sqrt(NOISE / batch))
        places.append(place.copy())
    return np.array(places)


NOISE_SCALE = 500  # images; lesson 01 goes on with this number
GAIN_BATCHES = (125, 500, 2000)  # images: a quarter of the noise scale, the noise scale, and four times as many


def step_gain() -> Drawing:
    """One step down a valley, for batches below, at and above the noise scale."""
    gains = [Fraction(batch, batch + NOISE_SCALE) for batch in GAIN_BATCHES]
    told = "; ".join(
        f"{batch:,} images: it gains {gain}, and a run needs {float(1 / gain):g} times as many steps"
        for batch, gain in zip(GAIN_BATCHES, gains, strict=True)
    )
    drawing = Drawing(
        "What one step gains",
        "Three valleys from the side, with one step in each. The step begins at the same height. The larger the batch "
        "is, the lower the step ends. The most that a step can gain is the way to the bottom. The noise scale is "
        f"{NOISE_SCALE} images. {told}.",
        238,
    )
    width = (WIDTH - 2 * MARGIN) / len(gains)
    high, low, half = 58, 158, 0.4 * width

    def place(middle: float, at: float) -> tuple[float, float]:
        return middle + at * half, low - at**2 * (low - high)

    for index, (batch, gain) in enumerate(zip(GAIN_BATCHES, gains, strict=True)):
        middle = MARGIN + (index + 0.5) * width
        drawing.text(middle, 22, f"{batch:,} images", "bold")
        drawing.wire(*[number for at in np.linspace(-1.1, 1.1, 45) for number in place(middle, at)])
        start, end = place(middle, -1), place(middle, -(float(1 - gain) ** 0.5))
        drawing.wire(middle - half, end[1], middle + half, end[1], dashed=True, width=1)
        drawing.arrow(*start, *end, look="gradient", width=3)
        drawing.dot(*start, 5, "worker1")
        drawing.text(middle, 184, f"gains {gain}", "tint-gradient", "bold")
        drawing.text(middle, 206, f"{float(1 / gain):g} times the steps", "muted", "small")
    drawing.text(WIDTH / 2, 228, "Dashed: the mean height after the step.", "muted", "small")
    return drawing
