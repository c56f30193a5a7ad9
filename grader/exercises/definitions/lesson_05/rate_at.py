"""This exercise asks for the learning rate at an update. The rate decays at the beginning of certain epochs."""

from dataclasses import dataclass, replace

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase


@dataclass(frozen=True)
class Arguments:
    """These are the arguments of `rate_at` in their order."""

    update: int
    images: int
    batch: int
    workers: int
    rate: float
    decay_epochs: list[int]

    @property
    def global_batch(self) -> int:
        """Return the number of images of all workers in one update."""
        return self.batch * self.workers

    @property
    def epoch(self) -> int:
        """Return the epoch of the update. The last global batch of an epoch may be smaller than the others."""
        return self.update // -(-self.images // self.global_batch)

    def decayed(self, epoch: int) -> float:
        """Return the rate in an epoch."""
        return self.rate / 10 ** sum(epoch >= decay for decay in self.decay_epochs)


def rate_at(update: int, images: int, batch: int, workers: int, rate: float, decay_epochs: list[int]) -> float:
    """Return the rate at an update."""
    return _right(Arguments(update, images, batch, workers, rate, decay_epochs))


def _right(given: Arguments) -> float:
    return given.decayed(given.epoch)


MISTAKES = Mistakes(Arguments)
mistake = MISTAKES.add


@mistake("These are one worker's epochs: together the workers use batch * workers images an update.")
def _one_worker(given: Arguments) -> float:
    return _right(replace(given, workers=1))


@mistake("Your epochs are an update too short where the images do not divide evenly: the last, smaller batch counts.")
def _floor(given: Arguments) -> float:
    return given.decayed(given.update // (given.images // given.global_batch))


@mistake("Your epochs are counted from 1: the first one has number 0.")
def _from_one(given: Arguments) -> float:
    return given.decayed(given.epoch + 1)


@mistake("This is an update late: the first update of a decay epoch has the smaller rate already.")
def _late(given: Arguments) -> float:
    return _right(replace(given, update=max(0, given.update - 1)))


@mistake("This is an update early: the last update before a decay epoch has the larger rate.")
def _early(given: Arguments) -> float:
    return _right(replace(given, update=given.update + 1))


@mistake("Your epochs are an update too long where the images divide evenly: round up, do not add 1 always.")
def _one_more(given: Arguments) -> float:
    return given.decayed(given.update // (given.images // given.global_batch + 1))


@mistake("The rate is divided at the beginning of a decay epoch, not at its end.")
def _end_of_epoch(given: Arguments) -> float:
    return given.decayed(given.epoch - 1)


@mistake("You divide once only: each decay epoch that has begun divides the rate by 10 again.")
def _once(given: Arguments) -> float:
    return _right(replace(given, decay_epochs=given.decay_epochs[:1]))


@mistake("A decay lasts: the rate stays divided in the epochs after it.")
def _only_then(given: Arguments) -> float:
    return given.rate / 10 if given.epoch in given.decay_epochs else given.rate


@mistake("decay_epochs are epochs, not updates: find the update's epoch first.")
def _as_updates(given: Arguments) -> float:
    return given.decayed(given.update)


@mistake("rate is scaled already: do not multiply it by the workers once more.")
def _scaled_again(given: Arguments) -> float:
    return _right(replace(given, rate=given.rate * given.workers))


def _schedule(draw: np.random.Generator, rest: bool) -> tuple[dict, int]:
    """Draw all arguments except the update, and return them with the number of updates in an epoch.

    With `rest`, the last global batch is smaller. The images divide evenly among the workers, so counting by shards, as
    the course's scripts do, is right too.
    """
    batch, workers, whole = 8 * int(draw.integers(4, 17)), int(draw.integers(2, 5)), int(draw.integers(60, 99))
    images = workers * (whole * batch + (int(draw.integers(1, batch // 2 + 1)) if rest else 0))
    decay_epochs = np.cumsum([draw.integers(2, 4), *draw.integers(5, 10, 2)]).tolist()
    rate = int(draw.integers(5, 80)) / 100
    schedule = {"images": images, "batch": batch, "workers": workers, "rate": rate, "decay_epochs": decay_epochs}
    return schedule, whole + rest


def _case(group: str, update: int, schedule: dict) -> TestCase:
    return TestCase(group, [{"update": int(update), **schedule}])


def _around(draw: np.random.Generator, group: str, rest: bool) -> list[TestCase]:
    """Draw the last updates before decays, the first updates after decays, and some in the middle of epochs."""
    cases = []
    for number, more in ((0, -1), (1, 0), (1, -1), (2, 0)):
        schedule, updates = _schedule(draw, rest)
        cases.append(_case(group, schedule["decay_epochs"][number] * updates + more, schedule))
    for number, middle in ((0, -0.5), (0, 1.5), (1, 0.5)):
        schedule, updates = _schedule(draw, rest)
        cases.append(_case(group, (schedule["decay_epochs"][number] + middle) * updates, schedule))
    return cases


def _draw(draw: np.random.Generator) -> list[TestCase]:
    before = "before the first decay"
    (early, updates), (constant, _) = _schedule(draw, False), _schedule(draw, True)
    return [
        _case(before, 0, early),
        _case(before, draw.integers(updates, 2 * updates), early),
        _case(before, draw.integers(1000, 9000), {**constant, "decay_epochs": []}),
        *_around(draw, "epochs of whole batches", rest=False),
        *_around(draw, "epochs with a last, smaller batch", rest=True),
    ]


EXERCISE = Compared(
    id="rate_at",
    title="A learning rate that decays by epochs",
    signature=(
        "rate_at(update: int, images: int, batch: int, workers: int, rate: float, decay_epochs: list[int]) -> float"
    ),
    statement="""\
Return the learning rate at update number `update` (the first is 0). Training begins with `rate`, which is scaled for
the workers already. At the beginning of each epoch in decay_epochs (in ascending order; the first epoch is 0) the rate
is divided by 10, and stays so.

In an epoch the workers together use all `images` images once, in global batches of batch * workers images (batch is the
per-worker batch). The last global batch of an epoch may be smaller. It makes an update, too. So the rate decays in the
same epochs with any number of workers, though not at the same updates.

Goyal et al. 2017 (arXiv:1706.02677), section 5.1, decays in epochs 30, 60 and 80.""",
    example=(20, 100, 10, 2, 0.8, [4]),
    groups={"before the first decay": 1, "epochs of whole batches": 1, "epochs with a last, smaller batch": 2},
    draw=_draw,
    reference=rate_at,
    mistakes=MISTAKES,
)
