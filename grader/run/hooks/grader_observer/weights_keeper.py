"""Keeps the network's weights of the last updates, commits to them, and shows them when the grader asks.

`log_format` says how the grader asks, and where the answers lie.
"""

import gc
import hashlib
import json
import os
import time
import weakref

import numpy as np
import torch

from .log_format import DONE_FILE, KEPT_UPDATES, NETWORK_FILE, answer_file, question_file

LINGER_SECONDS = 10  # the longest time that a worker waits at its end for the next question
LINGER_POLL_SECONDS = 0.02


class WeightsKeeper:
    """`folder` is where the worker's log lies. `rank` is the worker's rank."""

    def __init__(self, folder: str, rank: int):
        self.folder, self.rank = folder, rank
        self.challenges = os.path.join(os.path.dirname(folder), "challenges")
        self.shapes = wanted_shapes(os.path.join(self.challenges, NETWORK_FILE))
        self.networks = weakref.WeakSet()  # modules of the assignment's shape that were called
        self.searched: set[int] = set()  # ids of weights whose network was searched for
        self.kept: dict[int, np.ndarray] = {}  # by update, in order; 0 is before the first one
        self.before: np.ndarray | None = None  # the weights just before the step that is being made
        self.moved = 0.0  # how far something else than a step has moved the weights since the last update
        self.answered = 0

    def note_module(self, module: torch.nn.Module) -> None:
        """Take a module that is called for the first time."""
        if self.shapes and [list(parameter.shape) for parameter in module.parameters()] == self.shapes:
            self.networks.add(module)

    def parameters(self, stepped: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
        """Return the parameters of the network that an update changed, or None. `stepped` has its weights by id.

        A network that is compiled, or used by its `forward` alone, is never called. So it is searched for, once. If
        there is none, the weights that an optimizer has are taken for the network's, if they have its shapes in order.
        """
        if (found := self._known(stepped)) is None and self.shapes and not self.searched.issuperset(stepped):
            self.searched.update(stepped)
            for each in gc.get_objects():
                if issubclass(type(each), torch.nn.Module):
                    self.note_module(each)
            found = self._known(stepped)
        if found is not None:
            return found
        own = list(stepped.values())
        return own if self.shapes and [list(weight.shape) for weight in own] == self.shapes else None

    def _known(self, stepped: dict[int, torch.Tensor]) -> list[torch.Tensor] | None:
        for network in self.networks:
            parameters = list(network.parameters())
            if any(id(parameter) in stepped for parameter in parameters):
                return parameters
        return None

    def note_before(self, parameters: list[torch.Tensor] | None) -> None:
        """Take the weights just before a step, and see how far they have moved since the step before it."""
        self.before = None if parameters is None else vector_of(parameters)
        if self.before is not None and self.kept:
            self.moved = distance(self.before, self.kept[max(self.kept)])

    def keep(self, update: int, parameters: list[torch.Tensor] | None) -> str | None:
        """Keep the weights after an update, and return their SHA-256."""
        if parameters is None:
            return None
        vector = vector_of(parameters)
        self.kept[update] = vector
        if len(self.kept) > KEPT_UPDATES:
            del self.kept[min(self.kept)]
        return hashlib.sha256(vector.data).hexdigest()

    def lengths(self, update: int) -> dict[str, float | None]:
        """Return how far the last step has moved the weights, and how far something else had before it.

        They are the fields of the update's line. The weights after the step must have been kept.
        """
        after, moved, self.moved = self.kept.get(update), self.moved, 0.0
        if after is None or self.before is None:
            return {"step": None, "moved": None}
        return {"step": distance(after, self.before), "moved": moved}

    def answer(self) -> None:
        """Answer the questions that have come since the last call."""
        while (update := read_number(self._question())) is not None:
            before, after = self.kept.get(update - 1), self.kept.get(update)
            content = b"" if before is None or after is None else before.tobytes() + after.tobytes()
            path = os.path.join(self.folder, answer_file(self.rank, self.answered))
            with open(f"{path}.part", "wb") as file:
                file.write(content)
            os.rename(f"{path}.part", path)
            self.answered += 1

    def _question(self) -> str:
        return os.path.join(self.challenges, question_file(self.rank, self.answered))

    def linger(self) -> None:
        """Wait for the last questions after the last update, until the grader has no more.

        On a busy machine the grader may be slow to ask, so each question begins the time anew.
        """
        before, until = self.answered, time.monotonic() + LINGER_SECONDS
        while self.kept and time.monotonic() < until and not os.path.exists(os.path.join(self.challenges, DONE_FILE)):
            self.answer()
            if self.answered > before:
                before, until = self.answered, time.monotonic() + LINGER_SECONDS
            time.sleep(LINGER_POLL_SECONDS)


def vector_of(parameters: list[torch.Tensor]) -> np.ndarray:
    """Return parameters as one vector of float32 numbers."""
    return torch.cat([parameter.detach().reshape(-1).float() for parameter in parameters]).cpu().numpy()


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the distance between two vectors, to six digits. It is 0 if their lengths differ."""
    if one.shape != other.shape:
        return 0.0
    with np.errstate(all="ignore"):  # weights may be infinite
        return float(f"{np.linalg.norm(one - other):.6g}")


def wanted_shapes(path: str) -> list[list[int]]:
    """The shapes of the assignment's parameters; an empty list if the grader asks for nothing."""
    try:
        with open(path) as file:
            return json.load(file)
    except OSError:
        return []


def read_number(path: str) -> int | None:
    """The number in a file, or None while there is no such file."""
    try:
        with open(path) as file:
            return int(file.read())
    except OSError:
        return None
