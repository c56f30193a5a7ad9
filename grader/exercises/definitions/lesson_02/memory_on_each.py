"""This exercise asks how many bytes of memory each worker needs, for the parameters and for its images."""

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase

NUMBER = 4  # bytes of a number in float32


class Training:
    """These are the arguments of a call."""

    def __init__(self, weights: int, averages: int, activations: int, images: int, workers: int):
        self.weights, self.averages, self.activations = weights, averages, activations
        self.images, self.workers = images, workers

    @property
    def parameters(self) -> int:
        """Return the bytes of the weights, their gradients and the optimizer's averages."""
        return NUMBER * self.weights * (2 + self.averages)

    @property
    def shard(self) -> float:
        """Return the bytes of the activations of a worker's images."""
        return self.activations * self.images / self.workers


def memory_on_each(weights: int, averages: int, activations: int, images: int, workers: int) -> float:
    """Return the bytes that each worker needs. The images can be divided evenly among the workers."""
    training = Training(weights, averages, activations, images, workers)
    return training.parameters + training.shard


MISTAKES = Mistakes(Training)


@MISTAKES.add("Each worker has its share of the images only: divide them by the workers.")
def _all_images(training: Training) -> float:
    return training.parameters + training.activations * training.images


@MISTAKES.add("Only the images are divided. Each worker has all weights, gradients and averages.")
def _all_divided(training: Training) -> float:
    return training.parameters / training.workers + training.shard


@MISTAKES.add("These are the bytes of all workers together. The question is about each of them.")
def _together(training: Training) -> float:
    return training.workers * (training.parameters + training.shard)


@MISTAKES.add("The gradients are missing. There is one number for each weight.")
def _without_gradients(training: Training) -> float:
    return training.parameters - NUMBER * training.weights + training.shard


@MISTAKES.add("The optimizer's averages are missing. Each of them has a number for each weight.")
def _without_averages(training: Training) -> float:
    return 2 * NUMBER * training.weights + training.shard


@MISTAKES.add("A weight, a gradient and an average have 4 bytes each in float32.")
def _numbers(training: Training) -> float:
    return training.parameters / NUMBER + training.shard


@MISTAKES.add("activations is in bytes already: do not multiply it by 4.")
def _bytes_again(training: Training) -> float:
    return training.parameters + NUMBER * training.shard


@MISTAKES.add("There is no gradient for each image. The gradient has the shape of the weights, for any batch.")
def _a_gradient_for_each_image(training: Training) -> float:
    images = training.images / training.workers
    return training.parameters + training.shard + NUMBER * training.weights * (images - 1)


ONE, SEVERAL = "one worker", "several workers"


def _case(draw: np.random.Generator, group: str, averages: int) -> TestCase:
    workers = 1 if group == ONE else int(draw.integers(2, 65))
    return TestCase(
        group,
        [
            {
                "weights": 1000 * int(draw.integers(100, 30_000)),
                "averages": averages,
                "activations": 1000 * int(draw.integers(100, 50_000)),
                "images": workers * 8 * int(draw.integers(2, 65)),
                "workers": workers,
            }
        ],
    )


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [_case(draw, group, averages) for group in (ONE, SEVERAL) for averages in (0, 1, 2)]


EXERCISE = Compared(
    id="memory_on_each",
    title="The memory that each worker needs",
    signature=("memory_on_each(weights: int, averages: int, activations: int, images: int, workers: int) -> float"),
    statement="""\
A network with so many `weights` is trained in float32, in which a number has 4 bytes. There is a gradient for each
weight, and the optimizer keeps so many `averages` for each weight: 0 for plain SGD, 1 with momentum, 2 for Adam. An
image needs `activations` bytes for the backward pass. The global batch of `images` is divided evenly among the
`workers`, and each of them has all weights. How many bytes does each worker need for all of this?""",
    example=(1_000_000, 1, 500_000, 64, 4),
    groups={ONE: 1, SEVERAL: 2},
    draw=_draw,
    reference=memory_on_each,
    mistakes=MISTAKES,
)
