"""What a claim of the course is: its experiment, its verdict and its picture, as data and plain functions.

Each claim is a module in `benchmarks/claims/`, in the folder of its lesson. The module holds `CLAIM`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Settings = dict  # JSON values by name; "device" is always there
Values = dict  # what one run measured, JSON values by name
Runs = dict[str, list[Values]]  # by variant, in the order of the seeds
Word = Literal["holds", "fails", "depends", "no difference seen"]


@dataclass(frozen=True)
class Verdict:
    """What the runs say of the claim: a word, and a sentence with the numbers and, where it depends, on what."""

    word: Word
    sentence: str


@dataclass(frozen=True)
class Picture:
    """A figure, what it shows for those who cannot see it, and a caption whose numbers come from the runs."""

    figure: Figure
    alt: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and its experiment.

    `run(variant, seed, settings)` measures one variant once. Where starting the workers takes longer than what they
    measure, a claim has `run_all(seed, settings)` instead. It measures all variants in one launch, and returns their
    values by variant. `judge` and `picture` get the values of all runs.

    `settings` are those of the full experiment. Results with fewer seeds, or with a smaller number in any setting, are
    provisional. Variants that only choose a setting for another one need only `seeds_to_choose` seeds. `quick` replaces
    some of the settings where a learner waits for the run (at most 15 s on 2 cores for all variants and one seed).
    `caution` says why such a small run may disagree with the full one.
    """

    id: str
    statement: str
    source: str
    lesson: str
    variants: tuple[str, ...]
    seeds: int
    settings: Settings
    quick: Settings
    judge: Callable[[Runs], Verdict]
    picture: Callable[[Runs], Picture]
    caution: str
    run: Callable[[str, int, Settings], Values] | None = None
    run_all: Callable[[int, Settings], dict[str, Values]] | None = None
    timing_sensitive: bool = False  # it measures time, so nothing else should run on the machine
    partial: bool = False  # `picture` draws the variants that have runs where others have none
    seeds_to_choose: Mapping[str, int] = field(
        default_factory=dict
    )  # by variant, of those that need fewer than `seeds`

    def seeds_of(self, variant: str) -> int:
        """How many seeds a variant needs."""
        return self.seeds_to_choose.get(variant, self.seeds)

    @property
    def command(self) -> str:
        """Runs the full experiment, as far as it has no results; with `--rerun`, repeats it."""
        return f"python -m benchmarks {self.id}"
