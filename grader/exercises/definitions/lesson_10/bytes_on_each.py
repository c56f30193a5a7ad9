"""This exercise asks how many bytes of a network each worker keeps, with DDP and with the stages of ZeRO."""

import numpy as np

from grader.exercises import Compared, Mistakes, TestCase

NUMBER = 4  # bytes of a number in float32
PARTS = (1, 1, 2)  # numbers for each weight: the weight, its gradient, and the two means of Adam


class State:
    """These are the arguments of a call."""

    def __init__(self, weights: int, workers: int, stage: int):
        self.weights, self.workers, self.stage = weights, workers, stage


def _bytes(state: State, parts: tuple[int, ...] = PARTS) -> float:
    """Return the bytes on each worker. The last parts are divided, as many as the stage says."""
    whole = len(parts) - state.stage
    return NUMBER * state.weights * (sum(parts[:whole]) + sum(parts[whole:]) / state.workers)


def bytes_on_each(weights: int, workers: int, stage: int) -> float:
    """Return the bytes that each worker keeps."""
    return _bytes(State(weights, workers, stage))


MISTAKES = Mistakes(State)


@MISTAKES.add("Adam keeps two numbers for each weight, and not one.")
def _one_mean(state: State) -> float:
    return _bytes(state, (1, 1, 1))


@MISTAKES.add("The gradients are missing. There is one number for each weight.")
def _without_gradients(state: State) -> float:
    return _bytes(state, (1, 0, 2))


@MISTAKES.add("A number in float32 has 4 bytes.")
def _numbers(state: State) -> float:
    return _bytes(state) / NUMBER


@MISTAKES.add("Stage 1 divides Adam's numbers only, and stage 2 those and the gradients. The rest stays whole.")
def _all_divided(state: State) -> float:
    return _bytes(State(state.weights, state.workers, 3 if state.stage else 0))


@MISTAKES.add("Stage 1 divides Adam's numbers first. The weights come last, in stage 3.")
def _weights_first(state: State) -> float:
    cut = sum(PARTS[: state.stage])
    return NUMBER * state.weights * (sum(PARTS) - cut + cut / state.workers)


@MISTAKES.add("Stage 0 is DDP, which divides nothing. Stage 1 divides Adam's numbers.")
def _one_stage_early(state: State) -> float:
    return _bytes(State(state.weights, state.workers, min(3, state.stage + 1)))


@MISTAKES.add("Stage 1 divides Adam's numbers already, stage 2 also the gradients, and stage 3 everything.")
def _one_stage_late(state: State) -> float:
    return _bytes(State(state.weights, state.workers, max(0, state.stage - 1)))


@MISTAKES.add("These are the bytes of all workers together. Each keeps its own share only.")
def _together(state: State) -> float:
    return state.workers * _bytes(state)


def _case(draw: np.random.Generator, group: str, stage: int) -> TestCase:
    weights = 1000 * int(draw.integers(1_000, 10_000_000))
    return TestCase(group, [{"weights": weights, "workers": int(draw.integers(2, 65)), "stage": stage}])


DDP, SOME, ALL = "stage 0, which is DDP", "stages 1 and 2", "stage 3"


def _draw(draw: np.random.Generator) -> list[TestCase]:
    groups = {0: DDP, 1: SOME, 2: SOME, 3: ALL}
    return [_case(draw, group, stage) for stage, group in groups.items() for _ in range(2)]


EXERCISE = Compared(
    id="bytes_on_each",
    title="What fills a worker's memory",
    signature="bytes_on_each(weights: int, workers: int, stage: int) -> float",
    statement="""\
A network with so many `weights` is trained by Adam on several `workers`, all in float32. For each weight there are a
gradient and Adam's two means. How many bytes does each worker keep of all this?

The `stage` is that of ZeRO (Rajbhandari and others 2019, arXiv:1910.02054, figure 1). Stage 0 is DDP: each worker keeps
everything. Stage 1 divides Adam's means evenly among the workers. Stage 2 also divides the gradients, and stage 3 also
the weights. The activations do not count here.""",
    example=(7_000_000_000, 4, 1),
    groups={DDP: 1, SOME: 2, ALL: 1},
    draw=_draw,
    reference=bytes_on_each,
    mistakes=MISTAKES,
)
