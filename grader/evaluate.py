"""Measures what a run left: its checkpoint, on test images it never saw, and the figures it reported."""

import io
import json
import math
from pathlib import Path

import numpy as np
import torch
from pydantic import BaseModel, Field, NonNegativeFloat, PositiveInt, ValidationError

from cifar.model import ResNet9
from cifar.training import count_correct
from grader import untrusted
from grader.datakey import as_split
from grader.profile import NETWORK_WIDTH

MAX_CHECKPOINT_BYTES = 8 * 2**20  # ResNet9(width=16) has 1.7 MiB
MAX_METRICS_BYTES = 2**20


class EvaluationError(untrusted.UnreadableError):
    """A file that can be read but not used; the message is one line for the learner."""


class Metrics(BaseModel, strict=True, allow_inf_nan=False):
    """A line of `metrics.jsonl`."""

    epoch: PositiveInt
    lr: NonNegativeFloat
    train_loss: float
    test_accuracy: float = Field(ge=0, le=1)
    images_per_s: NonNegativeFloat
    seconds: NonNegativeFloat


def read_metrics(path: Path) -> list[Metrics]:
    """The lines of `metrics.jsonl`, epochs 1, 2, 3 ...; an error names the first line that is wrong."""
    lines = []
    for number, line in enumerate(
        untrusted.read(path, MAX_METRICS_BYTES).decode(errors="replace").splitlines(), start=1
    ):
        try:
            lines.append(Metrics.model_validate(json.loads(line)))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "content"
            raise EvaluationError(f"{path.name}, line {number}, {place}: {first['msg'].lower()}") from None
        except (ValueError, RecursionError):
            raise EvaluationError(f"{path.name}, line {number} is not JSON") from None
        if lines[-1].epoch != number:
            raise EvaluationError(f"{path.name}, line {number} is of epoch {lines[-1].epoch}, not {number}")
    return lines


def load_network(path: Path) -> ResNet9:
    """The checkpoint as the course's network; an error says in what it differs from one."""
    content = io.BytesIO(untrusted.read(path, MAX_CHECKPOINT_BYTES))
    try:
        state = torch.load(content, map_location="cpu", weights_only=True)
    except Exception as error:  # anything can be wrong with a file that somebody else made
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise EvaluationError(f"{path.name} is not a state dict that loads with weights_only=True: {reason}") from None
    network = ResNet9(width=NETWORK_WIDTH)
    _compare(path.name, state, network.state_dict())
    network.load_state_dict(state)
    return network


def _compare(name: str, state: object, wanted: dict[str, torch.Tensor]) -> None:
    """Raise EvaluationError unless `state` has just the entries of `wanted`, with their shapes, and finite numbers."""
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise EvaluationError(f"{name} is not a state dict: save net.state_dict()")
    if state and all(str(key).startswith("module.") for key in state):
        raise EvaluationError(f"{name} has names with the prefix 'module.': save the network inside the wrapper")
    if missing := sorted(wanted.keys() - state.keys()):
        raise EvaluationError(f"{name} lacks {missing[0]}: it is not of ResNet9(width={NETWORK_WIDTH})")
    if extra := sorted(map(str, state.keys() - wanted.keys())):
        raise EvaluationError(f"{name} has an entry {extra[0][:60]!r} that ResNet9(width={NETWORK_WIDTH}) has not")
    for key, value in wanted.items():
        if state[key].shape != value.shape or state[key].dtype != value.dtype:
            raise EvaluationError(f"{name}: {key} is {_kind(state[key])}, not {_kind(value)}")
        if not torch.isfinite(state[key]).all():
            raise EvaluationError(f"{name}: {key} holds numbers that are not finite; the training diverged")


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def accuracy(network: torch.nn.Module, records: np.ndarray) -> float:
    """Share of test records `(N, 3073)` that the network classifies correctly, 0 to 1."""
    split = as_split(records, "grader")
    return count_correct(network, split, torch.arange(len(split))).item() / len(split)


def agrees(reported: float, measured: float, images: int) -> bool:
    """Whether a reported accuracy can be the measured one: precision may change a few images in a thousand."""
    return math.isclose(reported, measured, abs_tol=0.005 + 1 / images)
