"""How sharp a minimum is: the Hessian's largest eigenvalue, found without ever writing the Hessian down."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from cifar.data import Split, normalise


def largest_eigenvalue(
    product: Callable[[Tensor], Tensor], start: Tensor, iterations: int = 50, tolerance: float = 0.01
) -> float:
    """The eigenvalue of largest magnitude of a symmetric matrix given as `product(vector)`, by power iteration.

    `start` is any vector `(N,)`, best a random one. Ends when the estimate changes by less than `tolerance` of itself.
    """
    vector, estimate = start / start.norm(), 0.0
    for _ in range(iterations):
        image = product(vector)
        previous, estimate = estimate, torch.dot(vector, image).item()
        vector = image / image.norm()
        if abs(estimate - previous) <= tolerance * abs(estimate):
            break
    return estimate


def sharpness(
    net: nn.Module, split: Split, seed: int = 0, iterations: int = 50, tolerance: float = 0.01
) -> float:  # fmt: skip
    """Largest eigenvalue of the Hessian of the mean cross-entropy over a split's images, not augmented.

    In evaluation mode, so that batch normalisation is a fixed map, and in float32: second derivatives of bfloat16 are
    mostly rounding. All images at once: keep the split small.
    """
    net.eval()
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    images, labels = split.batch(torch.arange(len(split)))
    loss = nn.functional.cross_entropy(net(normalise(images)), labels)
    slopes = torch.autograd.grad(loss, weights, create_graph=True)
    flat = torch.cat([slope.reshape(-1) for slope in slopes])

    def product(vector: Tensor) -> Tensor:
        """Hessian times vector: the gradient of (gradient . vector), Pearlmutter 1994."""
        parts = torch.autograd.grad(flat @ vector, weights, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in parts])

    draw = torch.Generator().manual_seed(seed)
    start = torch.randn(len(flat), generator=draw).to(flat.device)
    return largest_eigenvalue(product, start, iterations, tolerance)
