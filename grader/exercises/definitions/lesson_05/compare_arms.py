"""This exercise asks whether the accuracies of two arms over several seeds show a difference."""

import functools
import math
from collections.abc import Callable
from statistics import fmean, pvariance, variance

import numpy as np

from grader.exercises import Compared, Mistake, TestCase

NO_DIFFERENCE, TOO_FEW = "no difference seen", "too few runs"
Compare = Callable[[list[float], list[float]], str]


def _of_several_runs(compare: Compare) -> Compare:
    """Return a function that compares as `compare` does, but does not compare an arm of one run."""

    @functools.wraps(compare)
    def checked(a: list[float], b: list[float]) -> str:
        return TOO_FEW if min(len(a), len(b)) < 2 else compare(a, b)

    return checked


def _verdict(difference: float, least: float) -> str:
    """Return the answer if arm a is ahead by `difference`. Only a difference of more than `least` counts."""
    if abs(difference) <= least:
        return NO_DIFFERENCE
    return "a is higher" if difference > 0 else "b is higher"


def _error(a: list[float], b: list[float]) -> float:
    """Return the standard error of the means' difference. Each arm has at least two values."""
    return math.sqrt(variance(a) / len(a) + variance(b) / len(b))


@_of_several_runs
def compare_arms(a: list[float], b: list[float]) -> str:
    """Return what two arms show."""
    return _verdict(fmean(a) - fmean(b), 2 * _error(a, b))


@_of_several_runs
def _population(a: list[float], b: list[float]) -> str:
    return _verdict(fmean(a) - fmean(b), 2 * math.sqrt(pvariance(a) / len(a) + pvariance(b) / len(b)))


@_of_several_runs
def _one_error(a: list[float], b: list[float]) -> str:
    return _verdict(fmean(a) - fmean(b), _error(a, b))


@_of_several_runs
def _sum_of_errors(a: list[float], b: list[float]) -> str:
    return _verdict(fmean(a) - fmean(b), 2 * (math.sqrt(variance(a) / len(a)) + math.sqrt(variance(b) / len(b))))


@_of_several_runs
def _pooled(a: list[float], b: list[float]) -> str:
    squares = math.fsum(variance(arm) * (len(arm) - 1) for arm in (a, b)) / (len(a) + len(b) - 2)
    return _verdict(fmean(a) - fmean(b), 2 * math.sqrt(squares * (1 / len(a) + 1 / len(b))))


@_of_several_runs
def _deviation(a: list[float], b: list[float]) -> str:
    return _verdict(fmean(a) - fmean(b), 2 * math.sqrt(variance(a) + variance(b)))


@_of_several_runs
def _best(a: list[float], b: list[float]) -> str:
    return _verdict(max(a) - max(b), 0)


@_of_several_runs
def _certain(a: list[float], b: list[float]) -> str:
    return _verdict(fmean(a) - fmean(b), 0)


@_of_several_runs
def _exchanged(a: list[float], b: list[float]) -> str:
    return compare_arms(b, a)


def _unchecked(a: list[float], b: list[float]) -> str:
    spread = math.fsum(variance(arm) / len(arm) for arm in (a, b) if len(arm) > 1)
    return _verdict(fmean(a) - fmean(b), 2 * math.sqrt(spread))


MISTAKES = (
    Mistake(
        "population", _population,
        "This is the variance about the seeds' own mean, too small for few seeds: divide by n - 1, not by n.",
    ),
    Mistake("one standard error", _one_error, "Chance alone often moves means by one standard error: ask for two."),
    Mistake(
        "sum of errors", _sum_of_errors,
        "You ask for more than two standard errors: squares add up, each variance has its own n, and the factor is 2.",
    ),
    Mistake(
        "pooled", _pooled,
        "The arms do not share one variance or one number of runs: divide each arm's own variance by its own n.",
    ),
    Mistake(
        "standard deviation", _deviation,
        "This is the spread of single seeds: the mean of n of them is surer, divide each variance by its n.",
    ),
    Mistake("best", _best, "The best seed is luck, and more seeds have more of it: compare the means of all seeds."),
    Mistake("certain", _certain, "Two means always differ a little: say so only beyond two standard errors."),
    Mistake("exchanged", _exchanged, "The arms are exchanged: a is higher where its mean accuracy is the larger one."),
    Mistake(
        "unchecked", _unchecked,
        "One run does not show how much runs differ: return \"too few runs\" if an arm has only one.",
    ),
)  # fmt: skip


LEAST = (0.1, 0.4)
KINDS = (
    ("clear differences", (3.0, 3.5), (5, 6)),
    ("clear differences", (3.0, 3.5), (6, 6)),
    ("clear differences", (6, 9), (4, 3)),
    ("within the noise", LEAST, (4, 4)),
    ("within the noise", (0.6, 0.9), (3, 5)),
    ("within the noise", (1.1, 1.6), (4, 5)),
    ("near the border", (1.8, 1.95), (3, 3)),
    ("near the border", (1.9, 1.95), (3, 8)),
    ("near the border", (2.05, 2.3), (5, 5)),
    ("near the border", (2.05, 2.3), (3, 8)),
)  # each has a group, a range of standard errors between the means, and the numbers of seeds


def _arms(draw: np.random.Generator, sizes: tuple[int, int]) -> list[list[float]]:
    means = draw.uniform(0.7, 0.9) + draw.uniform(-0.1, 0.1, 2)
    return [np.round(draw.normal(mean, 0.01, size), 4).tolist() for mean, size in zip(means, sizes, strict=True)]


def _moved(arms: list[list[float]], errors: float) -> list[list[float]]:
    """Move the first arm so that its mean is ahead by `errors` standard errors."""
    first, second = arms
    by = errors * _error(*arms) - fmean(first) + fmean(second)
    return [[round(value + by, 4) for value in first], second]


def _similar(arms: list[list[float]]) -> bool:
    """Return whether both means have similar errors. The errors must be so large that rounding does not matter."""
    errors = sorted(math.sqrt(variance(arm) / len(arm)) for arm in arms)
    return errors[0] > 0.002 and errors[1] < 2 * errors[0]


def _best_is_behind(arms: list[list[float]]) -> bool:
    return max(arms[0]) < max(arms[1])


def _telling(arms: list[list[float]], group: str) -> bool:
    """Return whether arms can show the mistake `_pooled`, if they must.

    They must if they differ in size and are near the border. One variance for both arms must then give a wrong answer.
    """
    unequal = group == "near the border" and len(arms[0]) != len(arms[1])
    return not unequal or _pooled(*arms) != compare_arms(*arms)


def _wanted(arms: list[list[float]], group: str, errors: tuple[float, float]) -> bool:
    return _similar(arms) and _telling(arms, group) and (errors != LEAST or _best_is_behind(arms))


def _case(
    draw: np.random.Generator, group: str, errors: tuple[float, float], sizes: tuple[int, int], ahead: str
) -> TestCase:
    """Draw two arms. Between their means lie so many standard errors, from the first of `errors` to the second.

    If `errors` is LEAST, the arm with the higher mean does not have the best seed.
    """
    arms = None
    while arms is None or not _wanted(arms, group, errors):
        arms = _moved(_arms(draw, sizes), draw.uniform(*errors))
    first, second = arms
    return TestCase(group, [{"a": first, "b": second} if ahead == "a" else {"a": second, "b": first}])


def _single(draw: np.random.Generator, sizes: tuple[int, int]) -> TestCase:
    return TestCase("an arm of one seed", [dict(zip("ab", _arms(draw, sizes), strict=True))])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    ahead = ["ab", "ba"][draw.integers(2)]
    cases = [_case(draw, *kind, ahead[number % 2]) for number, kind in enumerate(KINDS)]
    return [*cases, *(_single(draw, sizes) for sizes in ((1, 4), (5, 1), (1, 1)))]


EXERCISE = Compared(
    id="compare_arms",
    title="Compare two arms over seeds",
    signature="compare_arms(a: list[float], b: list[float]) -> str",
    statement="""\
a and b are the test accuracies of two arms of an experiment. Each accuracy comes from a run with another seed. The
arms may have different numbers of runs. Return what they show: "a is higher", "b is higher", "no difference seen", or
"too few runs".

There are too few runs if an arm has only one, because one run does not show how much the runs differ. Otherwise a
difference is seen if the means differ by more than two standard errors of their difference. The square of this standard
error is var(a) / n_a + var(b) / n_b. Here n_a and n_b are the numbers of runs. The sample variance var is the sum of
the squared distances from the arm's mean, divided by n - 1.

Goyal et al. 2017 (arXiv:1706.02677), section 5.1, "Handling random variation", says why one run, or the best of many,
shows nothing.""",
    example=([0.60, 0.61, 0.62], [0.70, 0.71, 0.72]),
    groups={"clear differences": 1, "within the noise": 1, "near the border": 2, "an arm of one seed": 1},
    draw=_draw,
    reference=compare_arms,
    mistakes=MISTAKES,
)
