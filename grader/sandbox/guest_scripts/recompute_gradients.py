"""This program runs in a sandbox. It computes gradients of the assignment's network at weights that a worker has shown.

The first argument is a folder with these files:

- `tasks.json` is a list with an entry for each audited update. An entry has a list for each worker: `images` has the
  positions of its images in the file `images`, and `networks` has its numbers of the network's parameters. Those that
  are frozen have the number `FROZEN`. They have no gradient, and must not change.
- `weights` holds, for each entry, the weights before and after the update (float32).
- `images` holds the images (uint8, N x 3 x 32 x 32), and `labels` their classes (uint8).
- `width` is the width of the network.

The second argument is the path of the answer, a list as JSON. It has an object for each entry. `gradients` has the
projections of each worker's gradient. `change` is the cosine of the angle between the change of the weights and the
descent along the mean gradient. A number that is not finite becomes 0.
"""

import json
import math
import sys
from pathlib import Path

import torch
from grader_observer.log_format import FROZEN
from grader_observer.projections import Projections
from torch.nn.functional import cosine_similarity, cross_entropy
from torch.nn.utils import vector_to_parameters

from cifar.data import normalise
from cifar.model import ResNet9
from cifar.workers import autocast


def gradient(net: ResNet9, images: torch.Tensor, labels: torch.Tensor) -> list[torch.Tensor]:
    """Return the gradient of the mean cross-entropy of uint8 images, parameter by parameter."""
    with autocast(images.device):
        logits = net(normalise(images)).float()
    loss = cross_entropy(logits, labels)
    return list(torch.autograd.grad(loss, list(net.parameters())))


def projected(gradients: list[torch.Tensor], numbers: list[int], projections: Projections) -> list[float]:
    """Return the projections that the observer makes. They depend on the order in which it sums the gradients up."""
    parts = zip(numbers, gradients, strict=True)
    along = {number: projections.along(number, part) for number, part in parts if number != FROZEN}
    return [finite(value) for value in projections(along).tolist()]


def without_frozen(
    gradients: list[torch.Tensor], numbers: list[int], before: torch.Tensor, after: torch.Tensor
) -> list[torch.Tensor]:
    """Return the gradients with zeros for frozen parameters, and with nothing but zeros if one of these has changed."""
    sizes = [part.numel() for part in gradients]
    still = [torch.equal(*pair) for pair in zip(before.split(sizes), after.split(sizes), strict=True)]
    true = all(same or number != FROZEN for same, number in zip(still, numbers, strict=True))
    return [part * (true and number != FROZEN) for part, number in zip(gradients, numbers, strict=True)]


def finite(value: float) -> float:
    """Return the number, or 0 if it is not finite."""
    return value if math.isfinite(value) else 0.0


def main(folder: Path, answer: Path) -> None:
    """Read the folder, and write the answer."""
    tasks = json.loads((folder / "tasks.json").read_text())
    net, projections = ResNet9(int((folder / "width").read_text())), Projections()
    weights = torch.frombuffer(bytearray((folder / "weights").read_bytes()), dtype=torch.float32)
    weights = weights.view(len(tasks), 2, -1)
    images = torch.frombuffer(bytearray((folder / "images").read_bytes()), dtype=torch.uint8).view(-1, 3, 32, 32)
    labels = torch.frombuffer(bytearray((folder / "labels").read_bytes()), dtype=torch.uint8).long()
    found = []
    for task, (before, after) in zip(tasks, weights, strict=True):
        vector_to_parameters(before, net.parameters())
        gradients = [
            without_frozen(gradient(net, images[positions], labels[positions]), numbers, before, after)
            for positions, numbers in zip(task["images"], task["networks"], strict=True)
        ]
        mean = torch.cat([(sum(parts) / len(parts)).reshape(-1) for parts in zip(*gradients, strict=True)])
        found.append(
            {
                "gradients": [
                    projected(parts, numbers, projections)
                    for parts, numbers in zip(gradients, task["networks"], strict=True)
                ],
                "change": finite(cosine_similarity(before - after, mean, dim=0).item()),
            }
        )
    answer.write_text(json.dumps(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
