"""Compares an answer with the right one within a tolerance. It does not tell the right answer."""

import math
from dataclasses import dataclass

from grader.exercises.call_results import CallResult

KINDS = {bool: "True or False", str: "a text", list: "a list", int: "a number", float: "a number"}


@dataclass(frozen=True)
class Tolerance:
    """Two numbers count as equal if they differ by at most `relative` of the right one's size, or by `absolute`."""

    relative: float
    absolute: float

    def equal(self, one: float, right: float) -> bool:
        """Return whether a number counts as equal to the right one."""
        return math.isclose(one, right, rel_tol=self.relative, abs_tol=self.absolute)


def difference(result: CallResult, right: CallResult, tolerance: Tolerance) -> str:
    """Say how a result differs from the right one. The text is empty if the two are equal."""
    if right.raised:
        return "" if result.raised == right.raised else f"it should raise {right.raised}"
    if result.value is None:
        return f"{_kind(right.value)} is expected"
    return _values(result.value, right.value, tolerance, "it")


def _values(one: object, right: object, tolerance: Tolerance, place: str) -> str:
    if _kind(one) != _kind(right):
        return f"{place} should be {_kind(right)}, not {_kind(one)}"
    if isinstance(right, list):
        return _lists(one, right, tolerance, place)
    if isinstance(right, str | bool):
        return (
            "" if one == right else f"{place} should be another {'text' if isinstance(right, str) else 'truth value'}"
        )
    return "" if tolerance.equal(one, right) else f"{place} should be {_how_far(one, right)}"


def _lists(one: list, right: list, tolerance: Tolerance, place: str) -> str:
    if len(one) != len(right):
        return f"{place} should have {len(right)} elements, not {len(one)}"
    place = "" if place == "it" else place
    differences = (_values(*pair, tolerance, f"{place}[{at}]") for at, pair in enumerate(zip(one, right, strict=True)))
    return next(filter(None, differences), "")


def _how_far(one: float, right: float) -> str:
    """Say what would make a number right, with one digit of precision."""
    if right == 0 or one == 0:
        return "0" if right == 0 else "other than 0"
    if (one < 0) != (right < 0):
        return "of the other sign"
    ratio = right / one
    if ratio >= 2 or ratio <= 0.5:
        return f"about {_one_digit(ratio)} times as large"
    return f"about {_one_digit(100 * abs(ratio - 1))} % {'larger' if ratio > 1 else 'smaller'} in size"


def _one_digit(number: float) -> str:
    return f"{float(f'{number:.1g}'):g}"


def _kind(value: object) -> str:
    return KINDS[type(value)]
