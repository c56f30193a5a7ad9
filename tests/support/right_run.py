"""Makes up a right run. Tests change its parts and check what the rubric and the report say about it."""

import dataclasses
import random
import statistics
from collections.abc import Callable

from grader.common.contract import WORKERS, Profile
from grader.grading.audit import Audit
from grader.grading.checkpoint import Measured, Metrics
from grader.grading.evidence import Evidence
from grader.run import challenger
from grader.run.hooks.grader_observer.log_format import PROJECTIONS
from grader.run.launch import Run
from grader.run.process_monitor import OutsideView
from grader.run.worker_log import End, First, Update, Worker

PROFILE = Profile(
    "made up", epochs=2, batch_size=4, train_images=160, test_images=100, target=0.5, max_points_without_end=60
)
UPDATES = PROFILE.updates()  # this is 20, because each of the 2 epochs has 10 updates
WEIGHTS_BYTES = challenger.network_bytes()
Change = Callable[[int, Update], dict]  # it gives the fields of a worker's update that differ from a right run


def right_run(settings: Profile = PROFILE, **changes: object) -> Evidence:
    """Return the evidence of a right run that followed `settings`.

    The `changes` replace fields of the evidence. One of them is `profile`, by which the run is judged.
    """
    made = Evidence(
        profile=settings, run=run(outside=outside(settings)), workers=workers(settings=settings), log="",
        metrics=[metrics(epoch) for epoch in range(1, settings.epochs + 1)],
        checkpoint=Measured(weights=settings.updates(), visible=0.6, secret=0.58), visible_images=100,
        secret_images=100,
        audit=Audit(asked=20, agreement=(0.8,) * 20, changes=(0.6,) * 20),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def run(**changes: object) -> Run:
    made = Run(status=0, seconds=60.0, stopped=None, outside=outside(), isolation="made up")
    return dataclasses.replace(made, **changes)


def outside(settings: Profile = PROFILE, **changes: object) -> OutsideView:
    made = OutsideView(
        cpu_seconds=dict.fromkeys(range(WORKERS), 50.0), running=set(range(WORKERS)),
        loopback=[(update, 6 * WEIGHTS_BYTES * update) for update in range(settings.updates() + 1)],
        writes={"model.pt": 1, "metrics.jsonl": 1},
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def metrics(epoch: int, **changes: object) -> Metrics:
    line = {"epoch": epoch, "lr": 0.1, "train_loss": 1.0, "test_accuracy": 0.6, "images_per_s": 9.0, "seconds": 30.0}
    return Metrics(**line | changes)


def workers(
    change: Change = lambda rank, update: {}, first: dict | None = None, settings: Profile = PROFILE
) -> list[Worker]:
    """Return four workers. Their updates differ from a right run's by `change`, and their first lines by `first`."""
    images = range(settings.train_images)
    orders = [random.Random(epoch).sample(images, len(images)) for epoch in range(settings.epochs)]
    made = []
    for rank in range(WORKERS):
        updates = right_updates(rank, orders, settings.batch_size)
        begun = {"start": 7, "bytes": WEIGHTS_BYTES, "size": WORKERS, "device": "cpu", "optimizer": "SGD"}
        begun["commitment"] = None
        made.append(
            Worker(
                First(**begun | (first or {})),
                [dataclasses.replace(update, **change(rank, update)) for update in updates],
                End(end=len(updates), wrote=["model.pt"] if rank == 0 else []),
            )
        )
    return made


def right_updates(rank: int, orders: list[list[int]], batch_size: int) -> list[Update]:
    """Return the updates of a worker in a right run. `orders` has the order of the training images in each epoch."""
    shards = [order[rank::WORKERS] for order in orders]
    batches = [shard[start:][:batch_size] for shard in shards for start in range(0, len(shard), batch_size)]
    return [line(rank, number, images, len(batches) // len(orders)) for number, images in enumerate(batches, start=1)]


def line(rank: int, number: int, images: list[int], epoch_updates: int) -> Update:
    """Return update `number` of a worker, as in a right run with `epoch_updates` updates per epoch."""
    own = [gradient(other, number) for other in range(WORKERS)]
    epoch_ended = number > 1 and number % epoch_updates == 1
    return Update(
        update=number, lr=[min(0.4, 0.1 + 0.1 * (number - 1))], images=images, calls=1, test_images=0, weights=number,
        local=own[rank], applied=[statistics.fmean(part) for part in zip(*own, strict=True)], loss=2 / number,
        step=1.0, moved=0.0,
        wrote=["metrics.jsonl"] if rank == 0 and epoch_ended else [], commitment=None, network=None,
    )  # fmt: skip


def gradient(rank: int, number: int) -> list[float]:
    """Return the projections of a worker's own gradient at an update."""
    draw = random.Random(f"{rank} {number}")
    return [draw.gauss(0, 1) for _ in range(PROJECTIONS)]
