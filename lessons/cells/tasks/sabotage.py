"""Puts one bug into a right program for four workers, launches it, and shows what the workers do.

sabotage("no shards", my_guess=2)   # the bug's name, and the number of the row that the learner expects to fail
patient(1)                          # a bug whose name is not told
diagnose(1, "no shards")            # the learner's answer

The program is `cifar_base.py`, and the rows are those of `convert`, and one more.
"""

import html
from pathlib import Path
from typing import NamedTuple

from IPython.display import HTML, display

from lessons.cells.launches.observed_worker import Observed
from lessons.cells.launches.running import SOURCE, RunError
from lessons.cells.tasks import convert
from lessons.cells.tasks.convert import Step

BROKEN = Path("sabotaged.py")  # in the notebook's folder
AVERAGED = "named_parameters=net.named_parameters()"


class Bug(NamedTuple):
    """A bug: a text of `cifar_base.py`, what stands in its place, and what one learns from the symptoms."""

    text: str
    instead: str
    lesson: str


BUGS = {
    "no broadcast": Bug(
        "hvd.broadcast_parameters(net.state_dict(), root_rank=0)", "pass",
        "All apply the same mean gradient, so the distance between the networks stays. The gradient was computed at "
        "four different sets of weights, and is right for none of them.",
    ),
    "no shards": Bug(
        "shard(order, hvd.rank(), hvd.size())", "order",
        "Each worker uses all images. Nothing fails, and the four workers do four times the work of one.",
    ),
    "no averaging": Bug(
        f"optimizer = hvd.DistributedOptimizer(optimizer, {AVERAGED})\n", "",
        "Four networks train alone, each on a quarter of the images, and one of them is saved.",
    ),
    "sum for mean": Bug(
        AVERAGED, f"{AVERAGED}, op=hvd.Sum",
        "All rows are met, and still the gradient is four times too long. Adam divides the factor out again, so nearly "
        "nothing happens. SGD would make steps that are four times as long. We would have to watch the gradients.",
    ),
    "one order for all epochs": Bug(
        "shuffle(len(train), args.seed, epoch)", "shuffle(len(train), args.seed, 0)",
        "Each worker sees the same images in each epoch, in the same order. With PyTorch's sampler this is a forgotten "
        "set_epoch.",
    ),
    "one seed for all": Bug(
        "args.seed + hvd.rank()", "args.seed",
        "The workers distort their images alike. They also start alike, so a missing broadcast would not show.",
    ),
    "mean of the counts": Bug(
        "hvd.allreduce(correct, op=hvd.Sum)", "hvd.allreduce(correct)",
        "The training is right. The number that is printed is a quarter of the true accuracy.",
    ),
    "all write": Bug(
        "write=hvd.rank() == 0", "write=True",
        "With one folder for all, the lines of four workers would be mixed in one file.",
    ),
    "rank 0 asks alone": Bug(
        "correct = hvd.allreduce(correct, op=hvd.Sum)",
        "correct = hvd.allreduce(correct, op=hvd.Sum) if hvd.rank() == 0 else correct",
        "Rank 0 waits for the others, and they wait for it in the next exchange. Without our limit of twenty seconds, "
        "the program would wait for ever. Horovod's message names the tensors and the ranks that are missing.",
    ),
}  # fmt: skip
PATIENTS = ("one order for all epochs", "mean of the counts", "no averaging", "sum for mean")


def sabotage(bug: str, my_guess: int | None = None) -> list[Step]:
    """Launch the program with a bug, show what the workers do, and compare with the row that was expected to fail.

    Returns the rows. They are empty if the program did not end well. Raises ValueError if there is no such bug.
    """
    rows = _run(_bug(bug))
    failed = [number for number, row in enumerate(rows, 1) if not row.met]
    told = (
        f"Rows that are not met: {', '.join(map(str, failed)) or 'none'}." if rows else "The program did not end well."
    )
    if my_guess is not None:
        told += f" You expected row {my_guess}."
    display(HTML(f"<p>{html.escape(f'{told} {BUGS[bug].lesson}')}</p>"))
    return rows


def patient(number: int) -> list[Step]:
    """Launch a program with an unknown bug, and show what the workers do. Returns the rows."""
    return _run(BUGS[_patient(number)])


def diagnose(number: int, answer: str) -> bool:
    """Say whether the patient has the bug that the learner names. Raises ValueError if there is no such bug."""
    bug, right = _bug(answer), _patient(number) == answer
    told = f"Yes. {bug.lesson}" if right else f"No. With {answer!r}, the rows look different. Look again."
    display(HTML(f"<p>{html.escape(told)}</p>"))
    return right


def _bug(name: str) -> Bug:
    if name not in BUGS:
        raise ValueError(f"there is no bug {name!r}; choose one of: {', '.join(BUGS)}")
    return BUGS[name]


def _patient(number: int) -> str:
    if number not in range(1, len(PATIENTS) + 1):
        raise ValueError(f"there is no patient {number!r}; there are 1 to {len(PATIENTS)}")
    return PATIENTS[number - 1]


def _run(bug: Bug) -> list[Step]:
    """Launch the program with a bug, and show the rows, or the last lines of a program that did not end well."""
    program = (SOURCE / "cifar_base.py").read_text(encoding="utf-8")
    BROKEN.write_text(program.replace(bug.text, bug.instead), encoding="utf-8")
    try:
        workers, accuracy = convert.observe(BROKEN)
    except RunError as error:
        display(HTML(f"<pre>{html.escape(str(error))}</pre>"))
        return []
    rows = [*convert.steps(workers, accuracy), _new_order(workers)]
    display(HTML(convert.steps_table(rows, not_met="broken")))
    return rows


def _new_order(workers: list[Observed]) -> Step:
    """Judge whether each epoch has an order of its own."""
    same = sum(worker.images[:1] == worker.images[-1:] for worker in workers)
    seen = f"{same} of {len(workers)} workers use the same images in the same order in both epochs."
    return Step("Each epoch has a new order.", same == 0, seen)
