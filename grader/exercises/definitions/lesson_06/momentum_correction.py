"""This exercise asks for an update with momentum correction, right after the learning rate has changed."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def _moved(weight: float, velocity: float) -> list[float]:
    return [weight - velocity, velocity]


def momentum_correction(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    """Return the new weight and the new velocity."""
    return _moved(weight, momentum * velocity * new_rate / old_rate + new_rate * gradient)


def _uncorrected(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    return _moved(weight, momentum * velocity + new_rate * gradient)


def _inverse(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    return _moved(weight, momentum * velocity * old_rate / new_rate + new_rate * gradient)


def _both(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    return _moved(weight, (momentum * velocity + new_rate * gradient) * new_rate / old_rate)


def _outside(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    velocity = momentum * velocity + gradient
    return [weight - new_rate * velocity, velocity]


def _old(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    return _moved(weight, momentum * velocity + old_rate * gradient)


def _damped(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    return momentum_correction(weight, velocity, (1 - momentum) * gradient, momentum, old_rate, new_rate)


def _uphill(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    _, velocity = momentum_correction(weight, velocity, gradient, momentum, old_rate, new_rate)
    return [weight + velocity, velocity]


def _exchanged(
    weight: float, velocity: float, gradient: float, momentum: float, old_rate: float, new_rate: float
) -> list[float]:
    return momentum_correction(weight, velocity, gradient, momentum, old_rate, new_rate)[::-1]


MISTAKES = (
    Mistake(
        "uncorrected", _uncorrected,
        "The velocity still has the old rate in it: scale it by new_rate / old_rate when the rate changes.",
    ),
    Mistake("inverse", _inverse, "The correction is upside down: scale the velocity by new_rate / old_rate."),
    Mistake(
        "both", _both,
        "Only the old velocity is to be corrected: the gradient meets new_rate for the first time.",
    ),
    Mistake(
        "outside", _outside,
        "In PyTorch's form the rate stays outside of the velocity; in this one the velocity has it in it already.",
    ),
    Mistake("old rate", _old, "This is the update at the old rate: from now on new_rate holds."),
    Mistake("damped", _damped, "The gradient is not multiplied by 1 - momentum here: new_rate alone is its factor."),
    Mistake("uphill", _uphill, "This climbs: take the velocity off the weight."),
    Mistake("exchanged", _exchanged, "The two are exchanged: the weight comes first, then the velocity."),
)  # fmt: skip


def _case(draw: np.random.Generator, group: str, factor: float, moving: bool = True) -> TestCase:
    weight, velocity, gradient = draw.choice([-1, 1], 3) * draw.integers(20, 300, 3) / 100
    # The new rate stays below 1. At a rate of 1, the two ways to write momentum would be the same.
    old_rate = draw.integers(5, 25) / 100
    arguments = {
        "weight": float(weight), "velocity": float(velocity / 5) if moving else 0.0, "gradient": float(gradient),
        "momentum": float(draw.choice([0.5, 0.8, 0.9])),
        "old_rate": float(old_rate), "new_rate": round(float(old_rate * factor), 4),
    }  # fmt: skip
    return TestCase(group, [arguments])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    return [
        *(_case(draw, "the rate stays", 1) for _ in range(2)),
        *(_case(draw, "the rate changes", factor) for factor in (0.1, 2, 4, draw.integers(11, 16) / 10)),
        *(_case(draw, "no velocity yet", factor, moving=False) for factor in (0.1, 4)),
    ]


EXERCISE = Compared(
    id="momentum_correction",
    title="Momentum correction at a change of the rate",
    signature=(
        "momentum_correction(weight: float, velocity: float, gradient: float, momentum: float, "
        "old_rate: float, new_rate: float) -> list[float]"
    ),
    statement="""\
Here the velocity contains the rate, as in the second form of the lesson: the velocity v becomes momentum * v + rate *
gradient, and then v is taken off the weight. Up to now the rate was `old_rate`, so `velocity` contains `old_rate`.

First correct `velocity`, so that it contains `new_rate`. Then make one update with `new_rate`. Return [new weight, new
velocity]. The weight must be the one that PyTorch's SGD reaches, whose velocity does not contain the rate.

Goyal et al. 2017 (arXiv:1706.02677), section 3, "Momentum correction".""",
    example=(1.0, 0.5, 1.0, 0.5, 0.25, 0.5),
    groups={"the rate stays": 1, "the rate changes": 2, "no velocity yet": 1},
    draw=_draw,
    reference=momentum_correction,
    mistakes=MISTAKES,
)
