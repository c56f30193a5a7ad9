"""Draws what a program does: one update of one worker, equal images or shards, and what the grader sees of a run."""

from lessons.drawings.shapes import MARGIN, WIDTH, Drawing

LAYERS, WORKERS, EACH = 3, 4, 4


def one_step() -> Drawing:
    """One update of one worker: forward, backward, and the step."""
    drawing = Drawing(
        "One update of one worker",
        "Forward: a batch of images goes through three layers and becomes a loss. Each layer keeps its input, which is"
        " called an activation. Backward: the gradients of the weights are computed from the last layer to the first, "
        "and each needs the activation that its layer has kept. Step: each weight minus the rate times its gradient.",
        330,
    )
    columns = [150 + 92 * number for number in range(LAYERS)]
    _line(drawing, 18, "Forward: the batch becomes a loss.")
    for number in range(EACH):
        drawing.image(26 + number % 2 * 22, 38 + number // 2 * 22, 18, "worker0")
    for number, x in enumerate(columns):
        drawing.arrow(x - (74 if number == 0 else 66), 58, x - 28, 58)
        drawing.weights(x, 58, f"w{'₁₂₃'[number]}", 46)
        drawing.arrow(x - 48, 60, x - 30, 98)  # from what comes in
        drawing.labelled(x - 38, 100, 76, 30, "computing", "input", "small")
    drawing.arrow(columns[-1] + 28, 58, 402, 58)
    drawing.box(404, 38, 60, 40, "card")
    drawing.text(434, 58, "loss")
    drawing.wire(434, 80, 434, 206)
    drawing.arrow(434, 206, columns[-1] + 28, 206)
    for number, x in enumerate(columns):
        drawing.arrow(x, 132, x, 190, look="computing")
        drawing.gradient(x, 206, f"g{'₁₂₃'[number]}", 48)
        if number:
            drawing.arrow(x - 28, 206, columns[number - 1] + 28, 206)
    drawing.label(columns[1], 160, "Backward: from the last layer to the first", 290)
    for number, x in enumerate(columns):
        drawing.arrow(x, 222, x, 270, look="gradient")
        drawing.weights(x, 288, f"w′{'₁₂₃'[number]}", 46)
    drawing.label(columns[1], 246, "Step: each w′ is w − rate · g", 230)
    return drawing


def same_images() -> Drawing:
    """Workers with equal images compute equal gradients. Workers with shards compute different ones."""
    drawing = Drawing(
        "The same images, or shards",
        "Above: all workers draw the same four images from the data set. Their gradients are equal, and the mean of "
        "them is the gradient of four images. Below: each of four workers draws four images of its own. The mean of "
        "their gradients is that of sixteen images.",
        336,
    )
    for y, heading, told, shards in (
        (20, "The same seed, and no shards", "four equal gradients: the mean of 4 images", False),
        (188, "Shards", "four different gradients: the mean of 16 images", True),
    ):
        drawing.text(MARGIN, y, heading, "bold", anchor="start")
        for number in range(WORKERS * EACH):
            x = MARGIN + 4 + number * 28.4
            used = shards or number < EACH
            drawing.image(x, y + 18, 22, f"worker{number // EACH}" if used else "computing")
        for rank in range(WORKERS):
            x = 72 + rank * 112
            source = MARGIN + 58 + (rank * EACH * 28.4 if shards else 0)
            drawing.arrow(source, y + 44, x, y + 70)
            drawing.worker(x - 26, y + 88, rank)
            drawing.gradient(x + 14, y + 88, f"g{'₀₁₂₃'[rank]}" if shards else "g", 44)
        drawing.text(WIDTH / 2, y + 126, told, "muted")
    return drawing


def what_the_grader_sees() -> Drawing:
    """The run of a learner's program: what is recorded inside, what is measured outside, and what is judged."""
    drawing = Drawing(
        "What the grader sees",
        "A learner's program runs with four workers in a sandbox. From inside, each worker's images, gradients, "
        "weights and learning rate are recorded at every update. From outside, the bytes that the workers exchange and "
        "the processor time of each are measured. Afterwards the network is tested on images that the program never "
        "saw. From all this the points are made.",
        332,
    )
    drawing.host(MARGIN, 10, WIDTH - 2 * MARGIN, 96, "your program, in a sandbox")
    for rank in range(WORKERS):
        x = 66 + rank * 116
        drawing.worker(x - 20, 66, rank)
        drawing.weights(x + 22, 66)
        if rank:
            drawing.wire(x - 116 + 40, 66, x - 38, 66, look="gradient", width=2.5)
    for x, title, lines in (
        (MARGIN, "recorded inside", ("images of each worker", "gradients, before and after", "weights and rate")),
        (
            MARGIN + 232,
            "measured outside",
            ("bytes between workers", "processor time of each", "files, and who writes them"),
        ),
    ):
        drawing.arrow(x + 112, 108, x + 112, 124)
        drawing.box(x, 126, 224, 96, "card")
        drawing.text(x + 112, 142, title, "bold")
        for number, words in enumerate(lines):
            drawing.text(x + 112, 164 + 20 * number, words, "small")
        drawing.arrow(x + 112, 224, x + 112, 240)
    drawing.box(MARGIN, 242, WIDTH - 2 * MARGIN, 52, "card")
    drawing.text(WIDTH / 2, 258, "100 points", "bold")
    drawing.text(WIDTH / 2, 279, "and the network is tested on images that it never saw", "small")
    drawing.text(WIDTH / 2, 314, "Purple: the workers exchange gradients. w: weights.", "small", "muted")
    return drawing


def right_and_wrong() -> Drawing:
    """What the pictures of a grade card look like for a right program, and for a wrong one."""
    drawing = Drawing(
        "A right program, and a wrong one",
        "Three pictures of a grade card, each for a right program at the left and a wrong one at the right. Shards: "
        "four colours cover all images once, or all four workers use the same quarter. Weights after updates 0, 1 and "
        "2: equal on all workers, or different after the first update. Learning rate: it climbs and falls, or it only "
        "falls.",
        392,
    )
    columns = ((100, 170, True), (300, 170, False))  # the left edge, the width, and whether it is right
    for left, width, right in columns:
        drawing.text(left + width / 2, 18, "right" if right else "wrong", "bold")
        quarter = width / WORKERS
        for rank in range(WORKERS):
            drawing.box(
                left + (rank if right else 0) * quarter, 34 + 20 * rank, quarter - 2, 16, f"worker{rank}", radius=2
            )
        for update in range(3):
            for rank in range(WORKERS):
                look = "weights" if right or not update else f"worker{rank}"
                drawing.box(left + 8 + update * 58, 146 + 24 * rank, 36, 19, look, radius=2)
            drawing.text(left + 26 + update * 58, 252, f"{update}", "small", "muted")
        top, low = 284, 350
        peak = [left, low - 12, left + 0.2 * width, top] if right else [left, top + 40]
        drawing.wire(*peak, left + width, low, look="gradient", width=2.5)
        drawing.wire(left, top - 6, left, low, left + width, low)
    for y, words in ((72, "shards"), (192, "weights"), (318, "rate")):
        drawing.text(MARGIN, y, words, anchor="start")
    drawing.text(MARGIN, 252, "update", "small", "muted", anchor="start")
    drawing.text(WIDTH / 2, 378, "Colours are workers. Dark boxes are equal weights.", "small", "muted")
    return drawing


def _line(drawing: Drawing, y: float, words: str) -> None:
    drawing.text(MARGIN, y, words, "muted", anchor="start")
