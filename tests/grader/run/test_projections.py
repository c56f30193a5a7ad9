"""The observer's projections of gradients are linear, and on average they are as long as the gradient."""

import pytest
import torch

from grader.run.hooks.grader_observer.projections import Projections

SHAPES = ((128, 3, 3, 3), (64,), (40, 16), (), (33, 5, 2))  # one has a row for each projection


def project(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Project the gradients like a worker projects its own."""
    projections = Projections()
    return projections({number: projections.along(number, gradient) for number, gradient in enumerate(gradients)})


def draw(seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def test_the_mean_projection_of_four_workers_is_the_projection_of_their_mean():
    workers = [draw(seed) for seed in range(4)]
    mean = [torch.stack(gradients).mean(0) for gradients in zip(*workers, strict=True)]
    own = torch.stack([project(gradients) for gradients in workers])
    torch.testing.assert_close(own.mean(0), project(mean), rtol=1e-4, atol=1e-4)
    assert own.std(0).median() > 1  # The workers' own projections differ much from the mean.


def test_the_projection_does_not_depend_on_the_memory_layout():
    gradients = draw(0)
    turned = [gradient.mT.contiguous().mT if gradient.dim() > 1 else gradient for gradient in gradients]
    last = [gradient.to(memory_format=torch.channels_last) if gradient.dim() == 4 else gradient for gradient in turned]
    assert turned[0].stride() != gradients[0].stride()
    assert last[0].stride() != gradients[0].stride()
    for other in (turned, last):
        torch.testing.assert_close(project(other), project(gradients), rtol=1e-4, atol=1e-4)


def test_projections_are_as_long_as_the_gradient_on_average():
    projections, gradient = Projections(), draw(0)[0]
    squares = [projections({number: projections.along(number, gradient)}).square().sum() for number in range(400)]
    assert torch.stack(squares).mean() / gradient.square().sum() == pytest.approx(1, abs=0.15)


def test_the_projections_of_two_groups_of_parameters_add_up_to_that_of_all():
    projections, gradients = Projections(), draw(0)
    along = {number: projections.along(number, gradient) for number, gradient in enumerate(gradients)}
    parts = projections({number: along[number] for number in (1, 3)}), projections({n: along[n] for n in (0, 2, 4)})
    torch.testing.assert_close(sum(parts), projections(along), rtol=1e-4, atol=1e-4)
