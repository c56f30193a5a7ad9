"""The validated result of one call of a function: an answer, an error, or neither."""

import json
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader.common.text import one_line
from grader.sandbox.guest_scripts.call_functions import TEXT, UnfitError, called, plain

MAX_SHOWN = 400  # characters of a call or an answer in a message


class CallResult(BaseModel):
    """Just one of: `value`, the name of the error `raised` with what it `said`, or the reason why there is `none`."""

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
        """For the learner, in one short line."""
        if self.value is not None:
            return f"gave {shown(told(self.value))}"
        return f"raised {shown(self.said or self.raised)}" if self.raised else f"gave no answer: {shown(self.none)}"


GARBLED = CallResult(none="what came out of the sandbox is no answer")


def read(text: object) -> CallResult:
    """The result in a text that came out of the sandbox; anything else becomes one without an answer."""
    try:
        return CallResult.model_validate(json.loads(text))
    except (TypeError, ValueError, RecursionError, UnfitError):
        return GARBLED


def of_call(function: Callable, arguments: dict) -> CallResult:
    """Call a trusted function in this process."""
    return CallResult.model_validate(called(function, arguments))


def told(value: object) -> str:
    """A value as Python writes it, its numbers with six digits."""
    if isinstance(value, list):
        return f"[{', '.join(map(told, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def shown(text: str, max_length: int = MAX_SHOWN) -> str:
    """Text from a learner, short enough for a message."""
    return one_line(text, max_length)
