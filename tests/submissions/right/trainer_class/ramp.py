"""The learning rate by update: a linear ramp up to the scaled rate, a linear ramp down to zero."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Ramp:
    """Rates from `low` to `high` over the first `top` updates, and from there to 0 at `last`."""

    low: float
    high: float
    top: int
    last: int

    def __call__(self, update: int) -> float:
        if update < self.top:
            return self.low + (self.high - self.low) * update / self.top
        return self.high * max(0, self.last - update) / (self.last - self.top)
