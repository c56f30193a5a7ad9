"""Reads a run's files. It measures the checkpoint on test images, and it reads the metrics."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field, NonNegativeFloat, PositiveInt, ValidationError

from grader.common import untrusted
from grader.common.contract import MAX_CHECKPOINT_BYTES, MAX_METRICS_BYTES, NETWORK_WIDTH
from grader.common.text import one_line
from grader.run.rekeyed_data import Rekeyed
from grader.run.worker_log import Update
from grader.sandbox import run_in_sandbox
from grader.sandbox.isolation import Isolation

CLASSIFY = Path(__file__).parents[1] / "sandbox" / "guest_scripts" / "classify_images.py"
CLASSES = 10
MAX_SECONDS = 1200  # seconds; 10,000 images take 10 on two cores, and much more on a busy machine
MAX_ACCURACY_DIFFERENCE = 0.005  # a share of the images; another number format changes the class of a few in a thousand


class EvaluationError(untrusted.UnreadableError):
    """The file can be read, but it cannot be used. The message is one line for the learner."""


class Metrics(BaseModel, strict=True, allow_inf_nan=False):
    """This is one line of `metrics.jsonl`. It describes one epoch."""

    epoch: PositiveInt
    lr: NonNegativeFloat
    train_loss: float
    test_accuracy: float = Field(ge=0, le=1)
    images_per_s: NonNegativeFloat
    seconds: NonNegativeFloat


def read_metrics(path: Path) -> list[Metrics]:
    """Return the lines of `metrics.jsonl`, which has one line per epoch. An error names the first wrong line."""
    lines = []
    for number, line in enumerate(
        untrusted.read(path, MAX_METRICS_BYTES).decode(errors="replace").splitlines(), start=1
    ):
        try:
            lines.append(Metrics.model_validate(json.loads(line)))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "content"
            raise EvaluationError(f"{path.name}, line {number}, {field}: {first['msg'].lower()}") from None
        except (ValueError, RecursionError):
            raise EvaluationError(f"{path.name}, line {number} is not JSON") from None
        if lines[-1].epoch != number:
            raise EvaluationError(f"{path.name}, line {number} is of epoch {lines[-1].epoch}, not {number}")
    return lines


class Answer(BaseModel, strict=True):
    """This is the first line of the second sandbox's answer. It gives the checkpoint's hash, or says what is wrong."""

    error: str = Field(max_length=400)
    weights: int | None
    commitment: str | None


@dataclass(frozen=True)
class Measured:
    """This was measured of a checkpoint.

    `weights` is a hash of its weights, and `commitment` is their SHA-256 as in a worker's line. `visible` and
    `secret` are the shares (0 to 1) of the visible and the secret images that it classifies correctly.
    """

    weights: int
    visible: float
    secret: float
    commitment: str | None = None

    def is_after(self, update: Update) -> bool:
        """Return whether these are the weights that a worker had after this update.

        The short hash of the optimizer's weights counts only where no network of the assignment's shape was seen.
        """
        if update.commitment is not None:
            return update.commitment == self.commitment
        return update.weights == self.weights


def measure(path: Path, data: Rekeyed, isolation: type[Isolation]) -> Measured:
    """Classify the visible and the secret test images with a checkpoint, in a second sandbox.

    The sandbox receives the checkpoint and the images, and it answers with logits. The labels stay outside. Raises
    untrusted.UnreadableError if the checkpoint is not one of the course's network. The message names the difference.
    """
    checkpoint = untrusted.read(path, MAX_CHECKPOINT_BYTES)
    records = np.concatenate([data.visible, data.secret])
    inputs = {"model.pt": checkpoint, "images": records[:, 1:].tobytes(), "width": str(NETWORK_WIDTH).encode()}
    max_bytes = len(records) * CLASSES * 4 + 1000
    try:
        content = run_in_sandbox.answer(
            {run_in_sandbox.PROGRAM: CLASSIFY.read_bytes()}, inputs, max_bytes, MAX_SECONDS, isolation
        )
        answer, logits = _read_answer(content, len(records))
    except run_in_sandbox.NoAnswerError as error:
        raise EvaluationError(f"{path.name} could not be evaluated: {error}") from None
    if answer.error:
        raise EvaluationError(f"{path.name} {answer.error}")
    right = logits.argmax(axis=1) == records[:, 0]
    visible = len(data.visible)
    return Measured(
        answer.weights, float(right[:visible].mean()), float(right[visible:].mean()), commitment=answer.commitment
    )


def _read_answer(content: bytes, images: int) -> tuple[Answer, np.ndarray]:
    """Split an answer into its first line and the logits `(images, 10)`, which are zeros if that line has an error."""
    first, _, rest = content.partition(b"\n")
    try:
        answer = Answer.model_validate_json(first)
        if not answer.error and None in (answer.weights, answer.commitment):
            raise ValueError
        logits = np.frombuffer(rest, "<f4").reshape(-1, CLASSES) if not answer.error else np.zeros((images, CLASSES))
    except ValueError:
        raise run_in_sandbox.NoAnswerError("its answer is garbled") from None
    if len(logits) != images:
        raise run_in_sandbox.NoAnswerError(f"it classified {len(logits)} of {images} images")
    return answer.model_copy(update={"error": one_line(answer.error)}), logits


def agrees(reported: float, measured: float, images: int) -> bool:
    """Return whether a reported accuracy (0 to 1) can be the one that was measured on `images` images."""
    return math.isclose(reported, measured, abs_tol=MAX_ACCURACY_DIFFERENCE + 1 / images)
