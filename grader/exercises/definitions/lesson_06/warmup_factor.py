"""This exercise asks for the factor of the learning rate during gradual warmup."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def warmup_factor(update: int, warmup: int, size: int) -> float:
    """Return the factor. It is 1 at update 0, and `size` from update `warmup` on."""
    return float(size) if update >= warmup else 1 + (size - 1) * update / warmup


def _from_zero(update: int, warmup: int, size: int) -> float:
    return size * min(1.0, update / warmup)


def _of_scaled_rate(update: int, warmup: int, size: int) -> float:
    return warmup_factor(update, warmup, size) / size


def _endless(update: int, warmup: int, size: int) -> float:
    return 1 + (size - 1) * update / warmup


def _none(update: int, warmup: int, size: int) -> float:
    return float(size)


def _constant(update: int, warmup: int, size: int) -> float:
    return float(size) if update >= warmup else 1.0


def _early(update: int, warmup: int, size: int) -> float:
    return warmup_factor(update + 1, warmup, size)


def _late(update: int, warmup: int, size: int) -> float:
    return warmup_factor(max(0, update - 1), warmup, size)


def _exponential(update: int, warmup: int, size: int) -> float:
    return float(size) ** min(1.0, update / warmup)


def _unscaled(update: int, warmup: int, size: int) -> float:
    return min(1.0, update / warmup)


MISTAKES = (
    Mistake("from zero", _from_zero, "This climbs from 0: gradual warmup begins at the base rate, factor 1."),
    Mistake(
        "of scaled rate", _of_scaled_rate,
        "This is a share of the scaled rate: the factor is for the base rate, from 1 to size.",
    ),
    Mistake("unscaled", _unscaled, "This climbs from 0 to 1: the factor goes from 1 to size."),
    Mistake("endless", _endless, "This never stops climbing: from update `warmup` on the factor is size."),
    Mistake("no warmup", _none, "This is the scaled rate from the first update on: the warmup is missing."),
    Mistake("constant", _constant, "This is constant warmup, with a jump at its end: climb in a straight line."),
    Mistake("early", _early, "This is one update ahead: the factor is 1 at update 0, size at update `warmup`."),
    Mistake("late", _late, "This lags one update behind: the factor is 1 at update 0, size at update `warmup`."),
    Mistake("exponential", _exponential, "This climbs by equal ratios: climb in a straight line, by equal steps."),
)  # fmt: skip


def _case(group: str, update: int, warmup: int, size: int) -> TestCase:
    return TestCase(group, [{"update": int(update), "warmup": int(warmup), "size": int(size)}])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    during, after, edge = "during the warmup", "from its end on", "no warmup, or one worker"
    cases = []
    for size in draw.choice([2, 4, 8, 16, 64], 4, replace=False):
        warmup = draw.integers(10, 500)
        cases.append(_case(during, draw.integers(2, warmup - 1), warmup, size))
    warmup, size = draw.integers(10, 500), draw.integers(2, 65)
    cases.append(_case(during, 0, warmup, size))
    cases += [_case(after, warmup + more, warmup, size) for more in (0, 1, draw.integers(2, 500))]
    no_warmup = (0, 0, size), (draw.integers(1, 9), 0, size)
    one_worker = (warmup // 2, warmup, 1), (warmup + 1, warmup, 1)
    return cases + [_case(edge, *arguments) for arguments in (*no_warmup, *one_worker)]


EXERCISE = Compared(
    id="warmup_factor",
    title="The learning rate's factor during warmup",
    signature="warmup_factor(update: int, warmup: int, size: int) -> float",
    statement="""\
Return the factor by which the base rate is multiplied at update number `update`. The first update is number 0.

The factor is 1 at update 0. From there it climbs in a straight line, and at update `warmup` it reaches `size`, the
number of workers. From then on it stays `size`. With warmup 0 it is `size` at once.

Goyal et al. 2017 (arXiv:1706.02677), section 2.2.""",
    example=(4, 8, 4),
    groups={"during the warmup": 2, "from its end on": 1, "no warmup, or one worker": 1},
    draw=_draw,
    reference=warmup_factor,
    mistakes=MISTAKES,
)
