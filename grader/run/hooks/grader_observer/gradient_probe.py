"""Measures the gradients that a worker computes itself, before anything averages them."""

import weakref
from collections.abc import Iterable

import torch

from .log_format import FROZEN
from .projections import Projections

MAX_PENDING = 512  # gradients that are kept until they are projected: a program may never call an optimizer


class GradientProbe:
    """Follows parameters, and projects the gradients that this worker computes for them."""

    def __init__(self):
        self.projections = Projections()
        self.count = 0  # of parameters followed so far
        self.followed = {}  # id of a parameter -> its number, and a weak reference: ids are used again
        self.pending = []  # number of a parameter, and a gradient of it that is not projected yet
        self.local = {}  # number of a parameter -> its gradient, projected along its rows

    def follow(self, parameters: Iterable[torch.Tensor]) -> None:
        """From now on, note the gradients of these parameters."""
        for parameter in parameters:
            if parameter.requires_grad and self.number(parameter) is None:
                number, self.count = self.count, self.count + 1
                self.followed[id(parameter)] = number, weakref.ref(parameter)
                parameter.register_hook(lambda gradient, number=number: self._note(number, gradient))

    def number(self, parameter: torch.Tensor) -> int | None:
        """The number of a parameter that is followed; None of any other."""
        number, reference = self.followed.get(id(parameter), (None, lambda: parameter))
        return number if reference() is parameter else None

    def numbers(self, parameters: list[torch.Tensor] | None) -> list[int] | None:
        """The numbers of parameters, in their order; None if one of them needs a gradient and is not followed.

        A parameter that is frozen during the run keeps its number. Momentum and weight decay may move it further.
        """
        found = [self._number_or_frozen(each) for each in parameters or []]
        return None if None in found or not found else found

    def _number_or_frozen(self, parameter: torch.Tensor) -> int | None:
        number = self.number(parameter)
        return FROZEN if number is None and not parameter.requires_grad else number

    def _note(self, number: int, gradient: torch.Tensor) -> None:
        self.pending.append((number, gradient))
        if len(self.pending) >= MAX_PENDING:
            self.project_pending()

    def project_pending(self) -> None:
        """Project the gradients noted since the last call; several backward passes add up, as they do in `.grad`.

        They are projected together because that takes a third of the time of projecting each between two layers'
        backward passes. Nothing changes them until then: PyTorch copies a gradient that somebody else holds.
        """
        for number, gradient in self.pending:
            along = self.projections.along(number, gradient)
            self.local[number] = self.local[number] + along if number in self.local else along
        self.pending.clear()

    def any(self) -> bool:
        """Whether any gradient was computed since the last call of `take`."""
        return bool(self.local or self.pending)

    def take(self) -> dict[int, torch.Tensor]:
        """The gradients computed since the last call, projected along their rows, by parameter's number."""
        local, self.local = self.local, {}
        return local

    def own(self, local: dict[int, torch.Tensor], weights: Iterable[torch.Tensor]) -> torch.Tensor | None:
        """The projections `(32,)` of those gradients in `local` that belong to `weights`; None if there are none."""
        numbers = (self.number(weight) for weight in weights)
        return self._project({number: local[number] for number in numbers if number in local})

    def applied(self, weights: Iterable[torch.Tensor]) -> torch.Tensor | None:
        """The projections `(32,)` of the gradients that lie in `weights` now, where an optimizer finds them."""
        graded = [(self.number(weight), weight.grad) for weight in weights if weight.grad is not None]
        along = self.projections.along
        return self._project({number: along(number, grad) for number, grad in graded if number is not None})

    def _project(self, along: dict[int, torch.Tensor]) -> torch.Tensor | None:
        return self.projections(along) if along else None
