"""Makes up what workers promise and answer, with true gradients of the assignment's network on random images."""

import dataclasses
import hashlib

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from cifar.data import normalise
from cifar.model import ResNet9
from cifar.workers import autocast
from grader.common.contract import NETWORK_WIDTH, WORKERS
from grader.run.challenger import Question
from grader.run.hooks.grader_observer.projections import Projections
from grader.run.worker_log import Update, Worker
from tests.support.short_worker import QUIET

BATCH = 8
UPDATES = 6
RATE = 0.05


@dataclasses.dataclass
class MadeUp:
    """A made-up run: the records of its images, its workers, and its questions, one for each update but the first."""

    train: np.ndarray
    workers: list[Worker]
    questions: list[Question]


def made_up() -> MadeUp:
    """Train the assignment's network by plain SGD on random images, as four workers would."""
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    train = draw.integers(0, 256, (WORKERS * BATCH * UPDATES, 3073), dtype=np.uint8)
    train[:, 0] %= 10
    net, projections = ResNet9(NETWORK_WIDTH), Projections()
    numbers = list(range(len(list(net.parameters()))))
    weights, workers = [vector(net)], [Worker() for _ in range(WORKERS)]
    order = draw.permutation(len(train)).reshape(UPDATES, WORKERS, BATCH).tolist()
    for number, parts in enumerate(order, start=1):
        own = [gradient(net, train[part]) for part in parts]
        local = [
            projections({index: projections.along(index, each) for index, each in enumerate(part)}) for part in own
        ]
        with torch.no_grad():
            for weight, *gradients in zip(net.parameters(), *own, strict=True):
                weight -= RATE * sum(gradients) / WORKERS
        weights.append(vector(net))
        for worker, part, projected in zip(workers, parts, local, strict=True):
            seen = {"images": part, "weights": number, "local": projected.tolist(), "network": numbers}
            worker.updates.append(Update(update=number, **QUIET | seen | {"commitment": promise(weights[-1])}))
    questions = [
        Question(
            worker=number % WORKERS, number=0, update=number, made=number,
            lines=[dataclasses.replace(worker.updates[number - 1]) for worker in workers],
            before=promise(weights[number - 1]), answer=weights[number - 1].tobytes() + weights[number].tobytes(),
        )
        for number in range(2, UPDATES + 1)
    ]  # fmt: skip
    return MadeUp(train, workers, questions)


def vector(net: torch.nn.Module) -> np.ndarray:
    """Return a copy of all parameters, in their order."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in net.parameters()]).numpy().copy()


def promise(weights: np.ndarray) -> str:
    """Return the commitment to these weights."""
    return hashlib.sha256(weights.data).hexdigest()


def gradient(net: ResNet9, records: np.ndarray) -> list[torch.Tensor]:
    """Return the gradient of the mean loss, parameter by parameter, for records `(N, 3073)`.

    It is computed as a program computes it, in bfloat16 where the processor has it.
    """
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32))
    with autocast(images.device):
        loss = cross_entropy(net(normalise(images)), torch.from_numpy(records[:, 0]).long())
    return list(torch.autograd.grad(loss, list(net.parameters())))
