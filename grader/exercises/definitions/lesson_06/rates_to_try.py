"""This exercise asks for the next step of a search for the best learning rate."""

import numpy as np

from grader.exercises import Compared, Mistake, TestCase


def rates_to_try(rates: list[float], accuracies: list[float]) -> list[float]:
    """Return those neighbours of the best rate that have not been tried, in rising order."""
    return _new(rates, _best(rates, accuracies))


def _best(rates: list[float], accuracies: list[float]) -> float:
    return rates[accuracies.index(max(accuracies))]


def _new(rates: list[float], middle: float) -> list[float]:
    return [rate for rate in (middle / 2, 2 * middle) if rate not in rates]


def _only_the_tried(rates: list[float], accuracies: list[float]) -> list[float]:
    best = _best(rates, accuracies)
    inside = min(rates) < best < max(rates) or len(rates) == 1
    return _new(rates, best) if inside else []


def _only_higher(rates: list[float], accuracies: list[float]) -> list[float]:
    best = _best(rates, accuracies)
    return [rate for rate in _new(rates, best) if rate > best]


def _newest(rates: list[float], accuracies: list[float]) -> list[float]:
    return _new(rates, rates[-1])


def _highest(rates: list[float], accuracies: list[float]) -> list[float]:
    return _new(rates, max(rates))


def _lowest_accuracy(rates: list[float], accuracies: list[float]) -> list[float]:
    return _new(rates, rates[accuracies.index(min(accuracies))])


def _tried_again(rates: list[float], accuracies: list[float]) -> list[float]:
    best = _best(rates, accuracies)
    return [best / 2, 2 * best]


def _falling(rates: list[float], accuracies: list[float]) -> list[float]:
    return rates_to_try(rates, accuracies)[::-1]


def _tenfold(rates: list[float], accuracies: list[float]) -> list[float]:
    best = _best(rates, accuracies)
    return [rate for rate in (best / 10, 10 * best) if rate not in rates]


MISTAKES = (
    Mistake(
        "only the tried", _only_the_tried,
        "The search ends too early: where the best rate is the lowest or the highest of all, an even better one may "
        "lie beyond it. Go on there.",
    ),
    Mistake("only higher", _only_higher, "The best rate may lie lower, too: look at half of the best rate as well."),
    Mistake("newest", _newest, "Go on from the rate with the highest accuracy, not from the one that was tried last."),
    Mistake(
        "highest", _highest,
        "Go on from the rate with the highest accuracy. The highest rate may be far above it.",
    ),
    Mistake(
        "lowest accuracy", _lowest_accuracy,
        "You go on from the rate with the lowest accuracy. A low loss would be good, but these are accuracies.",
    ),
    Mistake(
        "tried again", _tried_again,
        "A rate that has been tried already is trained again. Return only the new ones.",
    ),
    Mistake("falling", _falling, "The rates are the right ones, but the lower one has to come first."),
    Mistake("tenfold", _tenfold, "The neighbours of a rate are half of it and twice it, not a tenth and ten times."),
)  # fmt: skip

BASES = (0.01, 0.02, 0.03, 0.05, 0.06, 0.07, 0.09)
GUESSING = 0.1  # the accuracy of a network whose training has diverged


def _case(draw: np.random.Generator, group: str, steps: list[int], best: int, diverged: bool = False) -> TestCase:
    """Draw a search that has tried the rates base * 2 ** step, in any order.

    `best` is the step of the best rate. If `diverged` is true, the highest rate has the accuracy of guessing.
    """
    base = float(draw.choice(BASES))
    top = draw.uniform(0.5, 0.7)
    accuracy = {step: round(float(top - 0.03 * abs(step - best) - draw.uniform(0, 0.02)), 4) for step in steps}
    if diverged:
        accuracy[max(steps)] = GUESSING
    order = [int(step) for step in draw.permutation(steps)]
    arguments = {"rates": [base * 2.0**step for step in order], "accuracies": [accuracy[step] for step in order]}
    return TestCase(group, [arguments])


def _draw(draw: np.random.Generator) -> list[TestCase]:
    first, end, inside = "one rate was tried", "the best is the lowest or the highest", "the best lies inside"
    return [
        _case(draw, first, [0], 0),
        _case(draw, end, [0, 1, 2], 2),
        _case(draw, end, [0, 1], 1),
        _case(draw, end, [0, 1, 2, 3], 0, diverged=True),
        _case(draw, end, [0, 1], 0),
        _case(draw, inside, [0, 1, 2, 3], 2),
        _case(draw, inside, [0, 1, 2, 3, 4], 1, diverged=True),
        _case(draw, inside, [0, 2, 3], 2),
        _case(draw, inside, [0, 1, 3, 4], 1, diverged=True),
    ]


EXERCISE = Compared(
    id="rates_to_try",
    title="A search for the best learning rate",
    signature="rates_to_try(rates: list[float], accuracies: list[float]) -> list[float]",
    statement="""\
You search for the best learning rate. `rates` are the rates that have been tried, in the order of the trainings.
`accuracies` has the validation accuracy (0 to 1) of each, in the same order. No two of them are equal.

The best rate so far is the one with the highest accuracy. Its neighbours are half of it and twice it. Return those
neighbours that have not been tried, the lower one first. The search has ended when both were tried. Then return [].

This also leads beyond the rates that were tried: if the best is the highest rate, twice this rate is new.

Bengio 2012 (arXiv:1206.5533), section 3.3.""",
    example=([0.1, 0.2], [0.52, 0.57]),
    groups={"one rate was tried": 1, "the best is the lowest or the highest": 2, "the best lies inside": 1},
    draw=_draw,
    reference=rates_to_try,
    mistakes=MISTAKES,
)
