"""The sharpness of a minimum is the Hessian's largest eigenvalue. It is computed without storing the Hessian."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from cifar.data import Split, normalise


def largest_eigenvalue(
    product: Callable[[Tensor], Tensor], start: Tensor, iterations: int = 50, tolerance: float = 0.01
) -> float:
    """The eigenvalue of largest magnitude of a symmetric matrix, by power iteration.

    `product(vector)` multiplies the matrix by a vector `(N,)`. `start` is any vector `(N,)`; a random one is best. The
    iteration ends when the estimate changes by at most `tolerance` times itself.
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
    """The largest eigenvalue of the Hessian of the mean cross-entropy over a split's images, which are not augmented.

    The network is in evaluation mode, so that batch normalisation is a fixed map. It computes in float32, because
    second derivatives in bfloat16 are mostly rounding errors. All images pass through the network at once, so the split
    must be small.
    """
    net.eval()
    weights = [weight for weight in net.parameters() if weight.requires_grad]
    images, labels = split.batch(torch.arange(len(split)))
    loss = nn.functional.cross_entropy(net(normalise(images)), labels)
    slopes = torch.autograd.grad(loss, weights, create_graph=True)
    flat = torch.cat([slope.reshape(-1) for slope in slopes])

    def product(vector: Tensor) -> Tensor:
        """The Hessian times a vector. It is the gradient of the product gradient . vector (Pearlmutter 1994)."""
        parts = torch.autograd.grad(flat @ vector, weights, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in parts])

    draw = torch.Generator().manual_seed(seed)
    start = torch.randn(len(flat), generator=draw).to(flat.device)
    return largest_eigenvalue(product, start, iterations, tolerance)
