"""Random projections of gradients."""

import torch

from .log_format import PROJECTIONS


class Projections:
    """Random projections of a gradient, the same on every worker.

    They are linear: the workers' mean projection is the projection of their mean gradient. A few numbers therefore
    tell whether a worker applied that mean, without keeping a gradient. The random sign of each element is the product
    of a sign for its row and a sign for its column. The projections then cost one product of a matrix and a vector, in
    one pass over the gradient as it lies in memory.
    """

    def __init__(self):
        self.columns = {}  # parameter's number, gradient's strides -> signs along a row, and the order of dimensions
        self.rows = {}  # parameters' numbers -> signs of all their rows, and the projection to which each row belongs

    def along(self, number: int, gradient: torch.Tensor) -> torch.Tensor:
        """A gradient `(R, ...)` of parameter `number`, projected along its rows: `(R,)`. The rows' signs come later."""
        gradient = gradient.detach().float()
        if gradient.dim() < 2:
            return gradient.reshape(-1)
        key = number, gradient.stride()
        if key not in self.columns:
            order = sorted(range(1, gradient.dim()), key=gradient.stride, reverse=True)
            signs = draw_signs(number, gradient.shape[1:]).permute([dimension - 1 for dimension in order])
            self.columns[key] = signs.flatten().to(gradient.device), [0, *order]
        signs, order = self.columns[key]
        return torch.mv(gradient.permute(order).flatten(1), signs)

    def __call__(self, along: dict[int, torch.Tensor]) -> torch.Tensor:
        """The projections `(PROJECTIONS,)` of several gradients together, by the parameters' numbers."""
        values, key = torch.cat(list(along.values())), tuple(along)
        if key not in self.rows:
            signs = [draw_signs(~number, rows.shape) for number, rows in along.items()]
            indices = [torch.arange(len(rows)) * PROJECTIONS // len(rows) for rows in along.values()]
            self.rows[key] = torch.cat(signs).to(values.device), torch.cat(indices).to(values.device)
        signs, indices = self.rows[key]
        return values.new_zeros(PROJECTIONS).index_add_(0, indices, values * signs)


def draw_signs(seed: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Random signs, -1 or 1, that depend on nothing but the arguments."""
    drawn = torch.randint(2, shape, generator=torch.Generator().manual_seed(seed))
    return drawn.float() * 2 - 1  # float32, whatever the program has made the default
