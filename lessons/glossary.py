"""The course's terms, each with a meaning and the lesson that explains it.

A lesson explains a term where it is used for the first time, and prints it in bold there. `unexplained` finds a term
that a lesson uses before.
"""

import re
from pathlib import Path
from typing import NamedTuple

import jupytext

from grader.notebooks.build import lessons


class Term(NamedTuple):
    """A term, what it means in this course, and the number of the lesson that explains it."""

    name: str
    meaning: str
    lesson: str


TERMS = [
    Term("worker", "a process that trains a copy of the network together with others", "00"),
    Term("shard", "the part of the images that one worker uses", "00"),
    Term("batch", "the images whose mean gradient is computed at once", "00"),
    Term("data parallelism", "each worker has the whole network and a part of the images", "00"),
    Term("DDP", "`DistributedDataParallel`, PyTorch's own data parallelism", "00"),
    Term("rank", "the number of a worker, from 0 to size - 1", "00"),
    Term("update", "one change of the weights", "00"),
    Term("global batch", "the images of all workers in one update", "00"),
    Term("learning rate", "the factor of the gradient in an update, or *rate* for short", "01"),
    Term("epoch", "one pass over all images", "00"),
    Term("saddle", "a point where the loss is least in one direction and greatest in another", "11"),
    Term("noise scale", "the batch size at which a gradient's noise is as large as the gradient", "01"),
    Term("critical batch size", "the batch size from which on larger batches save ever less", "01"),
    Term("all-reduce", "an exchange after which all workers have the same sum or mean", "00"),
    Term("bfloat16", "a number format of 16 bits with the range of float32", "02"),
    Term("nats", "the unit of the loss, with the natural logarithm", "02"),
    Term("weight decay", "each update also makes the weights a little smaller", "06"),
    Term("activation", "the input of a layer, which is kept for the backward pass", "02"),
    Term("backward pass", "the computation of the gradients, from the last layer to the first", "02"),
    Term("weak scaling", "more workers, and each keeps its batch", "03"),
    Term("strong scaling", "more workers, and they share one batch", "03"),
    Term("Gloo", "a library for exchanges over any network", "03"),
    Term("deadlock", "workers wait for each other, and nobody can go on", "03"),
    Term("parameter server", "a process that collects gradients and sends the mean back", "03"),
    Term("ring all-reduce", "an all-reduce in which each worker sends chunks to its neighbour only", "03"),
    Term("latency", "the time of a message without content", "03"),
    Term("bandwidth", "the bytes that a link carries in a second", "03"),
    Term("collective", "an exchange that every worker has to call", "04"),
    Term("NCCL", "NVIDIA's library for exchanges between GPUs", "04"),
    Term("timeline", "a record of what was exchanged when", "04"),
    Term("broadcast", "one worker sends something to all others", "04"),
    Term("checkpoint", "a file with the state of a run", "04"),
    Term("overlap", "the exchange goes on while the backward pass still computes", "04"),
    Term("base rate", "the learning rate of one worker", "05"),
    Term("linear scaling rule", "the rate is multiplied by the number of workers", "05"),
    Term("warmup", "the rate climbs slowly at the start", "05"),
    Term("validation images", "images by which a recipe is chosen, used for neither training nor test", "06"),
    Term("trust ratio", "the length of a layer's weights over that of its update", "06"),
    Term("LARS", "an optimizer with a step length for each layer, on top of SGD", "06"),
    Term("speed-up", "the time of one worker over that of several", "07"),
    Term("efficiency", "the speed-up over the number of workers", "07"),
    Term("host", "a computer in a network of several", "09"),
    Term("elastic", "a run goes on when workers come or go", "09"),
    Term("straggler", "a worker that is late now and then", "09"),
    Term("ZeRO", "each worker keeps a part of the optimizer's state, gradients or weights", "10"),
    Term("tensor fusion", "small gradients travel together in one message", "14"),
    Term("loopback", "the network inside one machine", "14"),
    Term("Hessian", "the matrix of second derivatives of the loss", "15"),
    Term("velocity", "the running sum of gradients in SGD with momentum", "16"),
    Term("momentum correction", "the velocity is rescaled when the rate changes", "16"),
]


def table() -> str:
    """The glossary as a table in Markdown, in the order of the alphabet."""
    rows = sorted(TERMS, key=lambda term: term.name.lower())
    lines = [f"| {term.name} | {term.meaning} | {term.lesson} |" for term in rows]
    return "\n".join(["| term | meaning | explained in |", "| --- | --- | --- |", *lines])


def unexplained(solutions: Path) -> list[str]:
    """Say of each term that is not in bold at its first use, or whose first use is in another lesson, where that is."""
    texts = {lesson.name[:2]: _prose(lesson) for lesson in lessons(solutions)}
    return [told for term in TERMS if (told := _first_use(term, texts))]


def _first_use(term: Term, texts: dict[str, str]) -> str:
    """Return what is wrong with the first use of a term. It is empty if nothing is."""
    words = re.escape(term.name).replace(r"\ ", r"\s+")
    flags = re.IGNORECASE if term.name.islower() else re.NOFLAG
    pattern = re.compile(rf"(?<![\w-]){words}(s|es)?(?![\w-])", flags)
    for number, text in texts.items():
        if found := pattern.search(text):
            near = " ".join(text[max(0, found.start() - 40) : found.end() + 20].split())
            in_bold = text[: found.start()].count("**") % 2 == 1
            return "" if number == term.lesson and in_bold else f"{term.name}: {number}: ... {near} ..."
    return f"{term.name}: no lesson uses it"


def _prose(lesson: Path) -> str:
    """The sentences of a lesson, without its goals, headings, tables, formulas and code."""
    cells = jupytext.reads(lesson.read_text(encoding="utf-8"), fmt="py:percent").cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"^\*\*(After this notebook|Time:).*?(?=\n\n|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\$[^$]*\$", "", text)
