"""A made-up right run, small, whose parts tests change to see what the rubric and the report say of it."""

import dataclasses
import random
import statistics
from collections.abc import Callable

from grader.common.contract import WORKERS, Profile
from grader.grading.checkpoint import Measured, Metrics
from grader.grading.evidence import Evidence
from grader.run.launch import Run
from grader.run.process_monitor import OutsideView
from grader.run.worker_log import End, First, Update, Worker

PROFILE = Profile("made up", epochs=2, batch_size=4, train_images=160, test_images=100, target=0.5)
UPDATES = PROFILE.updates()  # 20
WEIGHTS_BYTES = 1000


def right_run(**changes: object) -> Evidence:
    """Evidence of a right run; `changes` replace its fields."""
    made = Evidence(
        profile=PROFILE, run=run(), workers=workers(), log="", metrics=[metrics(epoch) for epoch in (1, 2)],
        checkpoint=Measured(weights=UPDATES, visible=0.6, secret=0.58),
        visible_images=100,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def run(**changes: object) -> Run:
    made = Run(status=0, seconds=60.0, stopped=None, outside=outside(), isolation="made up")
    return dataclasses.replace(made, **changes)


def outside(**changes: object) -> OutsideView:
    made = OutsideView(
        cpu_seconds=dict.fromkeys(range(WORKERS), 50.0), running=set(range(WORKERS)),
        loopback=[(update, 6 * WEIGHTS_BYTES * update) for update in range(UPDATES + 1)],
        writes={"model.pt": 1, "metrics.jsonl": 1},
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def metrics(epoch: int, **changes: object) -> Metrics:
    line = {"epoch": epoch, "lr": 0.1, "train_loss": 1.0, "test_accuracy": 0.6, "images_per_s": 9.0, "seconds": 30.0}
    return Metrics(**line | changes)


def workers(change: Callable[[int, Update], dict] = lambda rank, update: {}, first: dict | None = None) -> list[Worker]:
    """Four workers; `change(rank, update)` gives the fields of an update's line that differ from a right run's."""
    orders = [random.Random(epoch).sample(range(PROFILE.train_images), PROFILE.train_images) for epoch in range(2)]
    made = []
    for rank in range(WORKERS):
        updates = [line(rank, number, orders) for number in range(1, UPDATES + 1)]
        begun = {"start": 7, "bytes": WEIGHTS_BYTES, "size": WORKERS, "device": "cpu", "optimizer": "SGD"}
        made.append(
            Worker(
                First(**begun | (first or {})),
                [dataclasses.replace(update, **change(rank, update)) for update in updates],
                End(end=UPDATES, wrote=["model.pt"] if rank == 0 else []),
            )
        )
    return made


def line(rank: int, number: int, orders: list[list[int]]) -> Update:
    """Update `number` of a worker, as in a right run."""
    epoch, step = divmod(number - 1, UPDATES // 2)
    own = [gradient(other, number) for other in range(WORKERS)]
    return Update(
        update=number, lr=[min(0.4, 0.1 + 0.1 * (number - 1))], images=orders[epoch][rank::WORKERS][4 * step :][:4],
        calls=1, weights=number, local=own[rank], applied=[statistics.fmean(part) for part in zip(*own, strict=True)],
        loss=2 / number, wrote=["metrics.jsonl"] if rank == 0 and number == 11 else [],
    )  # fmt: skip


def gradient(rank: int, number: int) -> list[float]:
    """The projections of a worker's own gradient at an update."""
    draw = random.Random(f"{rank} {number}")
    return [draw.gauss(0, 1) for _ in range(8)]
