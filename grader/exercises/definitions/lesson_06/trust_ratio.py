"""This exercise asks for LAMB's trust ratio of one layer."""

import math

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def _norm(vector: list[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in vector))


def _update(weights: list[float], direction: list[float], decay: float) -> list[float]:
    return [step + decay * weight for weight, step in zip(weights, direction, strict=True)]


def _ratio(above: float, below: float, otherwise: float = 1.0) -> float:
    return above / below if above > 0 and below > 0 else otherwise


def trust_ratio(weights: list[float], direction: list[float], decay: float) -> float:
    """Return ||weights|| / ||direction + decay * weights||. It is 1 if one of the norms is 0."""
    return _ratio(_norm(weights), _norm(_update(weights, direction, decay)))


def _without_decay(weights: list[float], direction: list[float], decay: float) -> float:
    return _ratio(_norm(weights), _norm(direction))


def _inverse(weights: list[float], direction: list[float], decay: float) -> float:
    return _ratio(_norm(_update(weights, direction, decay)), _norm(weights))


def _squared(weights: list[float], direction: list[float], decay: float) -> float:
    return trust_ratio(weights, direction, decay) ** 2


def _sum_of_norms(weights: list[float], direction: list[float], decay: float) -> float:
    return _ratio(_norm(weights), _norm(direction) + decay * _norm(weights))


def _absolute(weights: list[float], direction: list[float], decay: float) -> float:
    return _ratio(math.fsum(map(abs, weights)), math.fsum(map(abs, _update(weights, direction, decay))))


def _zero(weights: list[float], direction: list[float], decay: float) -> float:
    return _ratio(_norm(weights), _norm(_update(weights, direction, decay)), otherwise=0.0)


def _undefined(weights: list[float], direction: list[float], decay: float) -> float:
    return _norm(weights) / _norm(_update(weights, direction, decay))


MISTAKES = (
    Mistake("without decay", _without_decay, "Weight decay is part of LAMB's update: its norm is of r + decay * w."),
    Mistake("inverse", _inverse, "This is the inverse: the weights' norm stands above, the update's below."),
    Mistake("squared", _squared, "These are squared norms: a root is missing."),
    Mistake(
        "sum of norms", _sum_of_norms,
        "The norm of a sum is not the sum of the norms: add the decay to the direction first.",
    ),
    Mistake("absolute values", _absolute, "These are sums of absolute values: LAMB takes Euclidean norms."),
    Mistake("zero", _zero, "A ratio of 0 would freeze the layer for ever: where a norm is 0 the ratio is 1."),
    Mistake("undefined", _undefined, "The ratio is right: now return 1 where a norm is 0."),
)  # fmt: skip


def _case(group: str, weights: np.ndarray, direction: np.ndarray, decay: float) -> TestCase:
    arguments = {"weights": weights.tolist(), "direction": direction.tolist(), "decay": float(decay)}
    return TestCase(group, [arguments])


def _drawn(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw weights and an update's direction. No number of either is 0."""
    signs = draw.choice([-1, 1], (2, draw.integers(2, 6)))
    return tuple(signs * draw.integers(10, 300, signs.shape) / np.array([[100], [200]]))


def _draw(draw: np.random.Generator) -> list[TestCase]:
    plain, decayed, edge = "without weight decay", "with weight decay", "a norm is 0"
    weights, direction = _drawn(draw)
    none, half = np.zeros(len(weights)), 0.5
    return [
        *(_case(plain, *_drawn(draw), 0.0) for _ in range(3)),
        *(_case(decayed, *_drawn(draw), draw.integers(20, 100) / 100) for _ in range(4)),
        _case(edge, none, direction, half),
        _case(edge, weights, none, 0.0),
        _case(edge, weights, -half * weights, half),
    ]


EXERCISE = Compared(
    id="trust_ratio",
    title="LAMB's trust ratio",
    signature="trust_ratio(weights: list[float], direction: list[float], decay: float) -> float",
    statement="""\
`weights` are a layer's weights w, `direction` is Adam's direction r for them (equally many numbers), `decay` the
weight decay. Return the layer's trust ratio, ||w|| / ||r + decay * w||, with Euclidean norms: LAMB multiplies the
layer's step by it. (The paper's function phi is left out: phi(z) = z.)

Where either norm is 0 the ratio is 1.

You et al. 2019 (arXiv:1904.00962), algorithm 2.""",
    example=([3.0, 4.0], [0.0, 2.0], 0.0),
    groups={"without weight decay": 1, "with weight decay": 2, "a norm is 0": 1},
    draw=_draw,
    reference=trust_ratio,
    mistakes=MISTAKES,
)
