"""Checks what workers answered when they were asked for their weights.

A worker has promised, in its log, the SHA-256 of its weights at each update. `grader.run.challenger` has asked for some
of these weights. With them the grader computes the gradients itself, on the images that the lines name. The lines and
the weights are invented if the answers are not what was promised, if the gradients have nothing in common with those of
most lines, if they have next to no length, or if the weights do not follow the gradients.

A program may shift, mirror and mix its images, smooth its labels, and clip or compress its gradients. The grader does
none of this. So the gradients agree in direction only, and they are judged over many updates together.
"""

import hashlib
import json
import math
import operator
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from grader.common.contract import NETWORK_WIDTH, WORKERS
from grader.grading.gradient_analysis import cosine, usable
from grader.run.challenger import Question, network_sizes
from grader.run.hooks.grader_observer.log_format import FROZEN, PROJECTIONS
from grader.run.worker_log import Worker
from grader.sandbox import run_in_sandbox
from grader.sandbox.isolation import Isolation

RECOMPUTE = Path(__file__).parents[1] / "sandbox" / "guest_scripts" / "recompute_gradients.py"
MAX_IMAGES = 1024  # images of one worker in one update; a gradient of more is not computed again
MAX_SECONDS = 1800  # seconds; 12 updates of 4 x 250 images take 15 on two cores, and much more on a busy machine
MAX_ANSWER_BYTES = 2**20
UPDATES_TO_SEE = 4  # updates; a worker looks for questions after each, and the grader asks within one of them
MAX_DISTINCT = 0.4  # share of the images of an update; if four workers have the same images, it is a quarter
FITS = 0.08  # cosine of one update; an invented gradient reaches it at one of ten, or of five where weights differ


@dataclass(frozen=True)
class Audit:
    """What the questions of one run have shown.

    `asked` is the number of questions. Those that a worker could not see before its last update do not count. `silent`
    is how many of them got no answer. `false` is how many got an answer that differs from the promise, or asked about a
    line that was changed later. `unclear` is how many name images that no gradient can be computed of.

    There is a number for each other question. `agreement` has the cosine between claimed and computed gradients: see
    `_agreement`. `changes` has the cosine between the change of the weights and the computed gradients. `lengths` has
    the length of the claimed gradients, divided by that of the computed ones. `failure` says why, if these could not be
    computed.
    """

    asked: int = 0
    silent: int = 0
    false: int = 0
    unclear: int = 0
    agreement: tuple[float, ...] = ()
    changes: tuple[float, ...] = ()
    lengths: tuple[float, ...] = ()
    failure: str = ""

    @property
    def computed(self) -> int:
        """Return at how many updates the gradients were computed."""
        return len(self.agreement)

    @property
    def fitting(self) -> int:
        """Return at how many updates the claimed gradients fit the computed ones."""
        return sum(cosine >= FITS for cosine in self.agreement)


class Recomputed(BaseModel, strict=True):
    """The second sandbox's answer for one update."""

    gradients: list[list[float]]
    change: float


@dataclass(frozen=True)
class Task:
    """An answered question, and the training images that each worker used in this update."""

    question: Question
    images: list[list[int]]


def audit(
    questions: Sequence[Question], workers: Sequence[Worker], train: np.ndarray, isolation: type[Isolation]
) -> Audit:
    """Check the answers. `train` has the records of the training images, uint8 `(N, 3073)`.

    A line names the images that were fetched since the line before. A program that fetches its batches ahead uses them
    later, and how far ahead they are may change during the run. So the reading with which more gradients fit counts.
    """
    asked = [question for question in questions if question.answer or _went_on(workers[question.worker], question)]
    answered = [question for question in asked if question.answer]
    true = [question for question in answered if _is_as_promised(question, workers)]
    counts = Audit(asked=len(asked), silent=len(asked) - len(answered), false=len(answered) - len(true))
    noted = _compute(counts, true, [images_as_noted(worker) for worker in workers], train, isolation)
    if noted.fitting == noted.computed or _each_from_one_batch(workers):
        return noted
    ahead = _compute(counts, true, [images_fetched_ahead(worker) for worker in workers], train, isolation)
    return max(noted, ahead, key=lambda found: found.fitting)


def _each_from_one_batch(workers: Sequence[Worker]) -> bool:
    return all(update.calls == 1 for worker in workers for update in worker.updates)


def _compute(
    counts: Audit, questions: Sequence[Question], used: list[list[list[int]]], train: np.ndarray,
    isolation: type[Isolation],
) -> Audit:  # fmt: skip
    """Add to `counts` what the gradients show. `used` has, for each worker, the images of each of its updates."""
    tasks = [Task(question, [images[question.update - 1] for images in used]) for question in questions]
    clear = [task for task in tasks if _can_be_computed(task, len(train))]
    counts = replace(counts, unclear=len(tasks) - len(clear))
    if not clear:
        return counts
    try:
        found = _recompute(clear, train, isolation)
    except run_in_sandbox.NoAnswerError as error:
        return replace(counts, failure=str(error))
    agreement = tuple(_agreement(task, result) for task, result in zip(clear, found, strict=True))
    lengths = tuple(_length(task.question, result) for task, result in zip(clear, found, strict=True))
    return replace(counts, agreement=agreement, changes=tuple(result.change for result in found), lengths=lengths)


def _went_on(worker: Worker, question: Question) -> bool:
    """Return whether a worker made enough updates after a question to see it."""
    return len(worker.updates) >= question.made + UPDATES_TO_SEE


def _is_as_promised(question: Question, workers: Sequence[Worker]) -> bool:
    """Return whether the answer has the promised hashes, and no worker has changed its line since."""
    half = len(question.answer) // 2
    shown = [hashlib.sha256(part).hexdigest() for part in (question.answer[:half], question.answer[half:])]
    after = question.lines[question.worker].commitment
    if shown != [question.before, after]:
        return False
    for worker, line in zip(workers, question.lines, strict=True):
        if len(worker.updates) < question.update:
            return False
        if repr(worker.updates[question.update - 1]) != repr(line):  # with `!=`, a line with a NaN differs from itself
            return False
    return True


def images_as_noted(worker: Worker) -> list[list[int]]:
    """Return the images that each update used, if they were fetched between the update before it and this one.

    Where updates without images follow, a program has fetched many images at once and cut them into batches itself.
    They are divided among these updates in their order.
    """
    used = [[] for _ in worker.updates]
    fetches = [index for index, update in enumerate(worker.updates) if update.images]
    for start, stop in pairwise([*fetches, len(used)]):
        images = worker.updates[start].images
        size = math.ceil(len(images) / (stop - start))
        for index in range(start, stop):
            used[index] = images[size * (index - start) :][:size]
    return used


def images_fetched_ahead(worker: Worker) -> list[list[int]]:
    """Return the images that each update used, if a program fetches its batches before it needs them.

    An update uses as many batches as there are for each update on average.
    """
    used, waiting = [], deque()
    each = max(1, round(sum(update.calls for update in worker.updates) / max(1, len(worker.updates))))
    for update in worker.updates:
        size = math.ceil(len(update.images) / max(1, update.calls))
        waiting.extend(update.images[size * number :][:size] for number in range(update.calls))
        batches = [waiting.popleft() for _ in range(min(each, len(waiting)))]
        used.append([image for batch in batches for image in batch])
    return used


def _can_be_computed(task: Task, images: int) -> bool:
    """Return whether the lines name images and projections that a gradient can be computed of."""
    return all(
        _is_a_network(line.network or []) and line.local and len(line.local) == PROJECTIONS
        and 1 < len(used) <= MAX_IMAGES and max(used) < images
        for line, used in zip(task.question.lines, task.images, strict=True)
    )  # fmt: skip


def _is_a_network(numbers: Sequence[int]) -> bool:
    """Return whether these can be the numbers of the network's parameters: all differ, and most weights are trained."""
    sizes = network_sizes()
    trained = [number for number in numbers if number != FROZEN]
    moved = sum(size for size, number in zip(sizes, numbers, strict=False) if number != FROZEN)
    return len(numbers) == len(sizes) and moved > sum(sizes) / 2 and len(set(trained)) == len(trained)


def _recompute(tasks: Sequence[Task], train: np.ndarray, isolation: type[Isolation]) -> list[Recomputed]:
    """Compute the gradients of all workers at these updates, in a second sandbox."""
    used = sorted(set(chain.from_iterable(images for task in tasks for images in task.images)))
    position = {image: place for place, image in enumerate(used)}
    described = [
        {
            "images": [[position[image] for image in images] for images in task.images],
            "networks": [line.network for line in task.question.lines],
        }
        for task in tasks
    ]
    inputs = {
        "tasks.json": json.dumps(described).encode(), "weights": b"".join(task.question.answer for task in tasks),
        "images": train[used, 1:].tobytes(), "labels": train[used, 0].tobytes(), "width": str(NETWORK_WIDTH).encode(),
    }  # fmt: skip
    program = {run_in_sandbox.PROGRAM: RECOMPUTE.read_bytes()}
    content = run_in_sandbox.answer(program, inputs, MAX_ANSWER_BYTES, MAX_SECONDS, isolation)
    try:
        return TypeAdapter(list[Recomputed]).validate_json(content, strict=True)
    except ValidationError:
        raise run_in_sandbox.NoAnswerError("the audit's answer is garbled") from None


def _agreement(task: Task, result: Recomputed) -> float:
    """Return the cosine between claimed and computed projections of the workers' gradients.

    The workers' mean is subtracted from each, because gradients of other images have most of it in common. Where the
    workers' weights differ, the others' gradients belong to other weights. Then only the worker that was asked is
    compared, and what lies along the mean of the computed gradients is taken out of both. The cosine of gradients of
    other images is 0 on average in both cases.

    If all workers have the same images, nothing is left but their distortions. Then the gradient of the worker that was
    asked is compared as it is. The line on shards judges the images.
    """
    question = task.question
    if _share_images(task.images):
        claimed, computed = question.lines[question.worker].local, result.gradients[question.worker]
        return cosine(claimed, computed) if usable(claimed) and usable(computed) else 0.0
    same = len({line.commitment for line in question.lines}) == 1
    if same:
        claimed, computed = _centred([line.local for line in question.lines]), _centred(result.gradients)
    else:
        mean = [sum(column) for column in zip(*result.gradients, strict=True)]
        claimed = _across(question.lines[question.worker].local, mean)
        computed = _across(result.gradients[question.worker], mean)
    return cosine(claimed, computed) if usable(claimed) and usable(computed) else 0.0


def _share_images(images: Sequence[Sequence[int]]) -> bool:
    """Return whether the workers have so many images of an update in common that their gradients hardly differ."""
    return len(set(chain.from_iterable(images))) <= MAX_DISTINCT * sum(map(len, images))


def _length(question: Question, result: Recomputed) -> float:
    """Return the length of the claimed gradient of the worker that was asked, divided by that of the computed one."""
    claimed, computed = question.lines[question.worker].local, result.gradients[question.worker]
    return math.hypot(*claimed) / math.hypot(*computed) if usable(claimed) and usable(computed) else 0.0


def _centred(gradients: list[list[float]]) -> list[float]:
    """Subtract the workers' mean from the projections of all workers, and join them to one list."""
    mean = [sum(column) / WORKERS for column in zip(*gradients, strict=True)]
    return [value - average for gradient in gradients for value, average in zip(gradient, mean, strict=True)]


def _across(gradient: list[float], mean: list[float]) -> list[float]:
    """Return the part of a gradient that is at right angles to the mean."""
    if not usable(mean):
        return gradient
    share = sum(map(operator.mul, gradient, mean)) / sum(map(operator.mul, mean, mean))
    return [value - share * along for value, along in zip(gradient, mean, strict=True)]
