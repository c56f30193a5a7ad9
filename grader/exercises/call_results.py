"""A call result is the validated result of one call of a function. It is an answer, an error, or neither."""

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader.common.text import one_line
from grader.sandbox.guest_scripts.call_functions import TEXT, UnfitError, called, plain

MAX_SHOWN = 400  # characters; a call or an answer in a message must stay readable


class CallResult(BaseModel):
    """A result has exactly one of three fields.

    They are the answer `value`, the name of the error that was `raised`, and the reason why there is `none` of both.
    `said` is the text of the error.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    value: Any = None
    raised: str = Field("", max_length=TEXT)
    said: str = Field("", max_length=2 * TEXT)
    none: str = Field("", max_length=2 * TEXT)

    @model_validator(mode="after")
    def _one_of_three(self) -> "CallResult":
        if [self.value is not None, bool(self.raised), bool(self.none)].count(True) != 1:
            raise ValueError("just one of value, raised and none is needed")
        if self.value is not None:
            plain(self.value)
        return self

    def __str__(self) -> str:
        """Return the result in one short line for the learner."""
        if self.value is not None:
            return f"gave {shown(told(self.value))}"
        return f"raised {shown(self.said or self.raised)}" if self.raised else f"gave no answer: {shown(self.none)}"


GARBLED = CallResult(none="what came out of the sandbox is no answer")


def read(text: object) -> CallResult:
    """Read the result in a text that came out of the sandbox. Any other text becomes a result without an answer."""
    try:
        return CallResult.model_validate(json.loads(text))
    except (TypeError, ValueError, RecursionError, UnfitError):
        return GARBLED


def of_call(function: Callable, arguments: dict) -> CallResult:
    """Call a trusted function in this process, and return the result."""
    return CallResult.model_validate(called(function, arguments))


def told(value: object) -> str:
    """Return a value as Python writes it. Floats have six digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(told, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def shown(text: str, max_length: int = MAX_SHOWN) -> str:
    """Shorten a learner's text so that it fits in a message."""
    return one_line(text, max_length)
