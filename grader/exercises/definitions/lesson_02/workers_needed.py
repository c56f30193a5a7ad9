"""This exercise asks how many workers a batch needs, if each of them has so much memory."""

from math import ceil

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase

NUMBER = 4  # bytes of a number in float32


class Training:
    """These are the arguments of a call."""

    def __init__(self, weights: int, averages: int, activations: int, images: int, memory: int):
        self.weights, self.averages, self.activations = weights, averages, activations
        self.images, self.memory = images, memory

    @property
    def parameters(self) -> int:
        """Return the bytes of the weights, their gradients and the optimizer's averages."""
        return NUMBER * self.weights * (2 + self.averages)

    def workers(self, parameters: float, activations: float) -> int:
        """Return the smallest number of workers if these bytes are needed for the parameters, and for an image."""
        fitting = (self.memory - parameters) // activations
        return ceil(self.images / fitting) if fitting >= 1 else 0


def workers_needed(weights: int, averages: int, activations: int, images: int, memory: int) -> int:
    """Return the smallest number of workers into whose memory the batch fits, or 0 if no number is enough."""
    training = Training(weights, averages, activations, images, memory)
    return training.workers(training.parameters, activations)


MISTAKES = Mistakes(Training)


@MISTAKES.add("Only the images are divided. Each worker has all weights, gradients and averages.")
def _all_divided(training: Training) -> int:
    return ceil((training.parameters + training.activations * training.images) / training.memory)


@MISTAKES.add("The weights, gradients and averages need memory, too, on each worker.")
def _without_parameters(training: Training) -> int:
    return training.workers(0, training.activations)


@MISTAKES.add("The gradients are missing. There is one number for each weight.")
def _without_gradients(training: Training) -> int:
    return training.workers(training.parameters - NUMBER * training.weights, training.activations)


@MISTAKES.add("The optimizer's averages are missing. Each of them has a number for each weight.")
def _without_averages(training: Training) -> int:
    return training.workers(2 * NUMBER * training.weights, training.activations)


@MISTAKES.add("A weight, a gradient and an average have 4 bytes each in float32.")
def _numbers(training: Training) -> int:
    return training.workers(training.parameters / NUMBER, training.activations)


@MISTAKES.add("activations is in bytes already: do not multiply it by 4.")
def _bytes_again(training: Training) -> int:
    return training.workers(training.parameters, NUMBER * training.activations)


@MISTAKES.add("There is no gradient for each image. The gradient has the shape of the weights, for any batch.")
def _a_gradient_for_each_image(training: Training) -> int:
    return training.workers(training.parameters, training.activations + NUMBER * training.weights)


@MISTAKES.add("The last images need a worker, too: round the number of workers up.")
def _rounded_down(training: Training) -> int:
    fitting = (training.memory - training.parameters) // training.activations
    return max(1, training.images // fitting) if fitting >= 1 else 0


@MISTAKES.add("A worker cannot have a part of an image: round down the number of images that fit on one worker.")
def _parts_of_images(training: Training) -> int:
    rest = training.memory - training.parameters
    return ceil(training.images * training.activations / rest) if rest >= training.activations else 0


@MISTAKES.add("If not even one image fits beside the parameters, no number of workers is enough: return 0.")
def _one_image_always_fits(training: Training) -> int:
    return training.workers(training.parameters, training.activations) or training.images


ONE, SEVERAL, NEVER = "one worker is enough", "several workers", "no number is enough"


def _case(draw: np.random.Generator, group: str, averages: int) -> TestCase:
    """Draw a call. Some images fit on a worker, and a part of one more. The parameters need as much as many images."""
    weights = 1000 * int(draw.integers(100, 30_000))
    activations = int(NUMBER * weights * (2 + averages) / draw.uniform(15, 40))
    fitting = 0 if group == NEVER else int(draw.integers(24, 41))
    images = fitting if group == ONE else 12 * int(draw.integers(420, 800)) + 1
    rest = int((fitting + draw.uniform(0.5, 0.9)) * activations)
    memory = NUMBER * weights * (2 + averages) + rest
    call = {"weights": weights, "averages": averages, "activations": activations, "images": images, "memory": memory}
    return TestCase(group, [call])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [_case(draw, group, averages) for group in (ONE, SEVERAL, NEVER) for averages in (0, 1, 2)]


EXERCISE = Compared(
    id="workers_needed",
    title="How many workers does a batch need?",
    signature="workers_needed(weights: int, averages: int, activations: int, images: int, memory: int) -> int",
    statement="""\
A network with so many `weights` is trained in float32, in which a number has 4 bytes. The optimizer keeps so many
`averages` for each weight: 0 for plain SGD, 1 with momentum, 2 for Adam. An image needs `activations` bytes for the
backward pass. The `images` of a global batch are divided among the workers, as evenly as possible. Each worker has
`memory` bytes for all of this.

Return the smallest number of workers for which everything fits. Return 0 if no number of workers is enough.""",
    example=(1_000_000, 1, 500_000, 64, 20_000_000),
    groups={ONE: 1, SEVERAL: 1, NEVER: 1},
    draw=_draw,
    reference=workers_needed,
    mistakes=MISTAKES,
    relative=1e-9,  # the answers count workers, so they must be exact
)
