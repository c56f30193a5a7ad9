"""Two ways to send fewer bytes of a gradient: only its largest values (top-k), or two thin matrices (PowerSGD).

Both keep what was not sent, and add it to the next gradient. This is called error feedback.
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

SHARE = 0.01  # of all values, which top-k sends
RANK = 4  # columns of PowerSGD's thin matrices
FIRST_COMPRESSED = 2  # PyTorch's PowerSGD sends whole gradients before this update, and allows no smaller number
VALUE, PLACE = 4, 4  # bytes of a value, and of the number that says where it belongs


class TopK:
    """Sends the values of a gradient that are largest in size, and keeps the others for the next update.

    Stich and others 2018, "Sparsified SGD with Memory", algorithm 1. `gather` stacks a tensor of all workers, and takes
    a name, as `horovod_ops.gather` does.
    """

    def __init__(self, gather: Callable[[Tensor, str], Tensor], share: float = SHARE):
        self.gather, self.share = gather, share
        self.rest: Tensor | None = None

    def mean(self, gradient: Tensor) -> Tensor:
        """The mean of what the workers send. `gradient` is this worker's, and both have the shape (values,)."""
        wanted = gradient if self.rest is None else gradient + self.rest
        places = wanted.abs().topk(top_k_values(len(wanted), self.share), sorted=False).indices
        values = wanted[places]
        self.rest = wanted.index_fill(0, places, 0.0)
        all_places, all_values = self.gather(places.int(), "places"), self.gather(values, "values")
        total = torch.zeros_like(wanted).index_add_(0, all_places.flatten().long(), all_values.flatten())
        return total / len(all_values)


def top_k_values(values: int, share: float = SHARE) -> int:
    """How many of so many values are sent. It is at least one."""
    return max(1, round(share * values))


def top_k_bytes(values: int, share: float = SHARE) -> int:
    """The bytes that a worker hands over at each update: values, and their places."""
    return top_k_values(values, share) * (VALUE + PLACE)


def power_sgd_bytes(shapes: Iterable[Sequence[int]], rank: int = RANK) -> int:
    """The bytes of a gradient after PowerSGD. `shapes` are those of the network's tensors.

    A tensor of n rows and m other values in each row becomes matrices of n x rank and m x rank (Vogels and others 2019,
    "PowerSGD", algorithm 1). As in PyTorch, a tensor that would not become at most half as large is sent whole.
    """
    total = 0
    for first, *others in shapes:
        columns = torch.Size(others).numel()
        thin = (first + columns) * min(rank, first, columns)
        total += thin if others and 2 * thin < first * columns else first * columns
    return VALUE * total
