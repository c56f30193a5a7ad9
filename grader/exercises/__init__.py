"""The lessons' function exercises as data: what is asked, test cases drawn at random, and what a right answer is.

Each exercise is a module in `definitions/`, in the folder of its lesson. The module has the exercise's id as its name
and holds `EXERCISE`. A `Compared` exercise holds its reference and the common wrong formulas: its module stays with the
grader. A learner's copy of this package may leave such modules out; `public.json` then answers for them. A `Checked`
exercise holds no answer, and is needed on both sides.

References add numbers with `math.fsum`. Python's `sum` compensates rounding from 3.12 on, so the last digits of
`public.json` would depend on the version.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grader.exercises.call_results import CallResult

LESSONS = {
    "average_gradients": "lesson_03",
    "ring_step": "lesson_03",
    "ring_plan": "lesson_03",
    "noise_scale": "lesson_01",
    "warmup_factor": "lesson_06",
    "trust_ratio": "lesson_06",
    "shard_indices": "lesson_04",
    "bug_zoo": "lesson_04",
    "squared_error": "lesson_01",
    "step_time": "lesson_02",
    "pipeline_rate": "lesson_02",
    "traffic": "lesson_03",
    "rate_at": "lesson_05",
    "compare_arms": "lesson_05",
    "momentum_correction": "lesson_06",
    "effective_batch": "lesson_07",
    "updates_made": "lesson_07",
}  # the folder of each exercise, by its id
IDS = tuple(LESSONS)


@dataclass(frozen=True)
class TestCase:
    """The arguments of one call, by name and in order, and what the call should give.

    A `Checked` exercise judges several calls together, and has neither `right` nor `wrong`. An exercise draws the
    arguments. `test_cases.draw` adds the `right` result, and in `wrong` the result of each common mistake by its name.
    """

    group: str
    calls: list[dict]
    right: CallResult | None = None
    wrong: dict[str, CallResult] = field(default_factory=dict)


@dataclass(frozen=True)
class Mistake:
    """A common wrong answer: how it is computed, and the sentence for the learner who gives it."""

    name: str
    function: Callable
    sentence: str


class Mistakes(list[Mistake]):
    """The mistakes of an exercise with many arguments, which a mistake receives as one object of class `arguments`.

    A function is registered by a decorator that holds its sentence. The mistake has the function's name.
    """

    def __init__(self, arguments: type):
        super().__init__()
        self.arguments = arguments

    def add(self, sentence: str) -> Callable:
        """Decorator that registers a function of one argument as a mistake."""

        def register(function: Callable) -> Callable:
            name = function.__name__.strip("_").replace("_", " ")
            self.append(Mistake(name, lambda *values: function(self.arguments(*values)), sentence))
            return function

        return register


@dataclass(frozen=True)
class Finding:
    """What is wrong with the answers to the calls of a test case, and what to do; empty if nothing is."""

    seen: str = ""
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What all exercises have. `id` serves as nbgrader's grade_id; `groups` has points by kind of test case."""

    id: str
    title: str
    signature: str
    statement: str
    groups: dict[str, int]
    draw: Callable[[np.random.Generator], list[TestCase]]

    @property
    def function(self) -> str:
        """The name of the function that the learner writes."""
        return self.signature.partition("(")[0]

    @property
    def points(self) -> int:
        return sum(self.groups.values())


@dataclass(frozen=True, kw_only=True)
class Compared(Exercise):
    """Answers must equal the reference's, numbers within `relative` of its size or `absolute`.

    Where the reference raises an error, so must the learner's function.
    """

    reference: Callable
    mistakes: Sequence[Mistake]
    relative: float = 1e-4  # float32 is good enough
    absolute: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class Checked(Exercise):
    """Answers must satisfy `judge(calls, answers)`; each call is answered by a process of its own, as on workers."""

    judge: Callable[[list[dict], list], Finding]


def get(id: str) -> Exercise:
    """The exercise called `id`. KeyError if there is none, ModuleNotFoundError in a copy that leaves it out."""
    if id not in IDS:
        raise KeyError(id)
    return importlib.import_module(f"{__name__}.definitions.{LESSONS[id]}.{id}").EXERCISE
