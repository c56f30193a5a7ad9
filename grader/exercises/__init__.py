"""The lessons' function exercises are data: a statement, test cases drawn at random, and a rule for right answers.

Each exercise is a module in `definitions/`, in the folder of its lesson. The module has the exercise's id as its name
and holds `EXERCISE`. A `Compared` exercise holds its reference and the common wrong formulas, so only the grader needs
its module. A learner's copy of this package may leave such modules out, because `public.json` has the results for the
public test cases. A `Checked` exercise holds no answer, and both the grader and the learner need its module.

A new module is a new exercise. No list has to be changed. `python -m grader.exercises` then writes `public.json` anew.

References add numbers with `math.fsum`. From version 3.12 on, Python's `sum` compensates rounding errors. With `sum`,
the last digits of `public.json` would depend on the version.
"""

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from grader.exercises.call_results import CallResult


@dataclass(frozen=True)
class TestCase:
    """A test case has the arguments of one call, by name and in order, and the result that the call should have.

    A test case of a `Checked` exercise has several calls, which are judged together, and neither `right` nor `wrong`.
    The exercise draws the arguments. `test_cases.draw` adds the `right` result. It also adds in `wrong` the
    result of each common mistake by its name.
    """

    group: str
    calls: list[dict]
    right: CallResult | None = None
    wrong: dict[str, CallResult] = field(default_factory=dict)


@dataclass(frozen=True)
class Mistake:
    """A mistake is a common wrong answer. It has a function that computes it, and a sentence for the learner."""

    name: str
    function: Callable
    sentence: str


class Mistakes(list[Mistake]):
    """This list holds the mistakes of an exercise with many arguments.

    The function of a mistake receives the arguments as one object of class `arguments`.

    A function is registered by a decorator that holds its sentence. The mistake has the function's name.
    """

    def __init__(self, arguments: type):
        super().__init__()
        self.arguments = arguments

    def add(self, sentence: str) -> Callable:
        """Return a decorator that registers a function of one argument as a mistake."""

        def register(function: Callable) -> Callable:
            name = function.__name__.strip("_").replace("_", " ")

            @functools.wraps(function)
            def of_values(*values: object) -> object:
                return function(self.arguments(*values))

            self.append(Mistake(name, of_values, sentence))
            return function

        return register


@dataclass(frozen=True)
class Finding:
    """A finding says what is wrong with the answers of a test case, and what to do. It is empty if all are right."""

    seen: str = ""
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """All exercises have these fields. `id` is nbgrader's grade_id. `groups` has the points by kind of test case."""

    id: str
    title: str
    signature: str
    statement: str
    groups: dict[str, int]
    draw: Callable[[np.random.Generator], list[TestCase]]

    @property
    def function(self) -> str:
        """Return the name of the function that the learner writes."""
        return self.signature.partition("(")[0]

    @property
    def points(self) -> int:
        return sum(self.groups.values())


@dataclass(frozen=True, kw_only=True)
class Compared(Exercise):
    """Answers must equal those of the reference.

    The statement shows what the function returns for the arguments `example`.

    A number may differ from the right one by `relative` of its size, or by `absolute`. If the reference raises an
    error, the learner's function must raise it too.
    """

    example: tuple
    reference: Callable
    mistakes: Sequence[Mistake]
    relative: float = 1e-4  # a share; a learner may compute in float32, whose errors are smaller
    absolute: float = 1e-6  # this is for right answers of 0, which have no relative error


@dataclass(frozen=True, kw_only=True)
class Checked(Exercise):
    """Answers must satisfy `judge(calls, answers)`. Each call is made in a process of its own, as on workers."""

    judge: Callable[[list[dict], list], Finding]


@functools.cache
def lessons() -> dict[str, str]:
    """Return the folder of the lesson of each exercise by the exercise's id, in the order of the lessons."""
    modules = sorted(Path(__file__).parent.glob("definitions/lesson_*/[a-z]*.py"))
    return {path.stem: path.parent.name for path in modules}


def ids() -> tuple[str, ...]:
    """Return the ids of all exercises, in the order of the lessons."""
    return tuple(lessons())


def get(id: str) -> Exercise:
    """Return the exercise called `id`. Raises KeyError if there is none. A learner's copy leaves some exercises out."""
    return importlib.import_module(f"{__name__}.definitions.{lessons()[id]}.{id}").EXERCISE
