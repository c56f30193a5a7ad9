"""Asks workers, while they train, for the weights that their lines have promised.

A worker's line has the SHA-256 of the network's weights after its update. Some time after the grader has read the line,
it asks a worker for these weights and for those before the update. The worker cannot know at which updates it will be
asked. So it must have computed with these weights at all of them. `grader.grading.audit` checks the answers.
"""

import contextlib
import functools
import itertools
import json
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from cifar.model import ResNet9
from grader.common import untrusted
from grader.common.atomic_write import write_whole
from grader.common.contract import NETWORK_WIDTH, WORKERS
from grader.run.hooks.grader_observer.log_format import (
    DONE_FILE,
    KEPT_UPDATES,
    NETWORK_FILE,
    Update,
    answer_file,
    question_file,
)
from grader.run.worker_log import ended, last_updates, updates_so_far
from grader.sandbox.run_paths import RunPaths

MIN_UPDATES = 20  # of a run; in a shorter one the gradients would hardly depend on the images, so it is not asked
QUESTIONS = 12  # of one run; each takes its worker a few milliseconds, and the grader a second
FIRST_ASKED = 0.25  # share of the updates; gradients of a network that has hardly trained do not tell images apart
MAX_LAG = KEPT_UPDATES // 2  # updates; a worker has gone on by so many at most when it sees the question
LOOK_SECONDS = 0.1  # the time between two looks at the logs
FINAL_SECONDS = 8  # the longest time until the next of the last answers, when all workers have made their last update


@dataclass
class Question:
    """What worker `worker` was asked, as its question of this `number`: the weights before and after update `update`.

    `lines` are all workers' lines of this update when the question was asked. `before` is the SHA-256 that the worker
    had promised for the weights before the update. `made` is how many updates the worker had made when it was asked.
    `answer` holds the bytes of both weights. It is None if the worker did not answer, and empty if it did not keep the
    weights.
    """

    worker: int
    number: int
    update: int
    made: int
    lines: list[Update]
    before: str | None
    answer: bytes | None = None


def name_network(challenges: Path) -> None:
    """Tell the workers, before they start, the shapes of the network whose weights they must keep."""
    shapes = [list(parameter.shape) for parameter in ResNet9(NETWORK_WIDTH).parameters()]
    (challenges / NETWORK_FILE).write_text(json.dumps(shapes))


@functools.cache
def network_sizes() -> tuple[int, ...]:
    """Return how many numbers each parameter of the assignment's network has."""
    return tuple(parameter.numel() for parameter in ResNet9(NETWORK_WIDTH).parameters())


def network_bytes() -> int:
    """Return the size of the assignment's weights, as float32 numbers."""
    return 4 * sum(network_sizes())


def draw_updates(updates: int, chance: random.Random) -> list[int]:
    """Draw at which updates to ask, in their order: one from each of `QUESTIONS` stretches of equal length.

    `updates` is the number of updates of the run. There is nothing to ask if it is less than `MIN_UPDATES`.
    """
    if updates < MIN_UPDATES:
        return []
    first = 1 + max(1, int(FIRST_ASKED * updates))
    count = updates - first + 1
    edges = [first + count * number // QUESTIONS for number in range(QUESTIONS + 1)]
    return [chance.randrange(low, high) for low, high in itertools.pairwise(edges) if low < high]


class Challenger:
    """Asks from a thread of its own, until it is closed. `questions` has what was asked, with the answers.

    `challenges` is the folder for the questions. `written` has the paths of what the run writes. `updates` is how many
    updates a worker is expected to make.
    """

    def __init__(self, challenges: Path, written: RunPaths, updates: int):
        self.challenges, self.written = challenges, written
        self.chance = random.SystemRandom()
        self.pending = draw_updates(updates, self.chance)
        self.questions: list[Question] = []
        self.answer_bytes = 2 * network_bytes()
        self.closing = threading.Event()
        self.failure: OSError | None = None
        self.thread = threading.Thread(target=self._watch, daemon=True)
        if not self.pending:
            write_whole(self.challenges / DONE_FILE, "")  # no worker waits for a question at its end
            self.closing.set()
        self.thread.start()

    def close(self) -> None:
        """Stop asking, and take the last answers. The run's files must still be there.

        Raises OSError if a question could not be written, as on a full disk: then nothing can be said of the run.
        """
        self.closing.set()
        self.thread.join()
        self._read_answers()
        if self.failure:
            raise self.failure

    def _watch(self) -> None:
        try:
            self._ask_while_they_train()
        except OSError as error:
            self.failure = error

    def _ask_while_they_train(self) -> None:
        while not self.closing.wait(LOOK_SECONDS):
            logs = [self.written.worker_log(rank) for rank in range(WORKERS)]
            if all(map(ended, logs)):
                self._ask_at_the_end(logs)
                return
            newest = min(map(updates_so_far, logs))
            while self.pending and self.pending[0] < newest:  # the line of the newest update may still be replaced
                self._ask(max(self.pending.pop(0), newest - MAX_LAG), logs)
            self._read_answers()

    def _ask_at_the_end(self, logs: list[Path]) -> None:
        """Ask the questions that are left about the last updates. The workers wait for them."""
        newest = min(max(last_updates(log, MAX_LAG), default=0) for log in logs)
        last = range(max(2, newest - MAX_LAG), newest + 1)
        for update in self.chance.sample(last, min(len(self.pending), len(last))):
            self._ask(update, logs)
        missing, until = self._read_answers(), time.monotonic() + FINAL_SECONDS
        while missing and time.monotonic() < until and not self.closing.wait(LOOK_SECONDS):
            if (still := self._read_answers()) < missing:
                missing, until = still, time.monotonic() + FINAL_SECONDS
        write_whole(self.challenges / DONE_FILE, "")

    def _ask(self, update: int, logs: list[Path]) -> None:
        """Ask one worker about an update, unless that was asked before or some worker has no line of it."""
        found = [last_updates(log, KEPT_UPDATES) for log in logs]
        asked = any(question.update == update for question in self.questions)
        if asked or not all(update in lines and update - 1 in lines for lines in found):
            return
        worker = self.chance.randrange(WORKERS)
        number = sum(question.worker == worker for question in self.questions)
        lines = [lines[update] for lines in found]
        before = found[worker][update - 1].commitment
        write_whole(self.challenges / question_file(worker, number), str(update))
        made = max([*found[worker], *last_updates(logs[worker], 1)])  # on a busy machine it has gone on meanwhile
        self.questions.append(Question(worker, number, update, made, lines, before))

    def _read_answers(self) -> int:
        """Take the answers that have come, and remove their files, because they use the run's memory.

        Returns how many are still missing.
        """
        for question in self.questions:
            if question.answer is None:
                path = self.written.observe / answer_file(question.worker, question.number)
                with contextlib.suppress(untrusted.UnreadableError, OSError):
                    question.answer = untrusted.read(path, self.answer_bytes)
                    path.unlink()
        return sum(question.answer is None for question in self.questions)
