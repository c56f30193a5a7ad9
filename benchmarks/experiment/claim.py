"""The type of a claim of the course. It holds the claim's experiment, verdict and picture as data and functions.

Each claim is a module in `benchmarks/claims/`, in the folder of its lesson. The module holds `CLAIM`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Settings = dict  # JSON values by name; "device" is always one of the names
Values = dict  # the values that one run measured: JSON values by name
Runs = dict[str, list[Values]]  # the values of all runs by variant, in the order of the seeds
Word = Literal["holds", "fails", "depends", "no difference seen"]


@dataclass(frozen=True)
class Verdict:
    """What the runs say about the claim: a word, and a sentence with the numbers.

    Where the word is "depends", the sentence says on what it depends.
    """

    word: Word
    sentence: str


@dataclass(frozen=True)
class Picture:
    """A figure and its texts. `alt` describes it for those who cannot see it; `caption` has numbers from the runs."""

    figure: Figure
    alt: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim and its experiment.

    `run(variant, seed, settings)` measures one variant once. In some claims, starting the workers takes longer than the
    measurement. Such a claim has `run_all(seed, settings)` instead. It measures all variants in one launch, and returns
    their values by variant. `judge` and `picture` get the values of all runs.

    `settings` are those of the full experiment. Results with fewer seeds, or with a smaller number in any setting, are
    provisional. Some variants only help to choose a setting of another variant. They need fewer seeds, and
    `seeds_to_choose` says how many. `quick` replaces some of the settings where a learner waits for the run. A quick
    run takes at most 15 s on 2 cores for all variants and one seed. `caution` says why such a small run may disagree
    with the full one.
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
    timing_sensitive: bool = False  # true if it measures time: nothing else should then run on the machine
    # True if each round is judged by itself. Then another kind of machine may measure another round.
    rounds_apart: bool = False
    partial: bool = False  # true if `picture` can draw some variants while others have no runs
    seeds_to_choose: Mapping[str, int] = field(
        default_factory=dict
    )  # number of seeds by variant, for the variants that need fewer than `seeds`

    def seeds_of(self, variant: str) -> int:
        """How many seeds a variant needs."""
        return self.seeds_to_choose.get(variant, self.seeds)

    @property
    def command(self) -> str:
        """The command that runs what has no results yet of the full experiment. With `--rerun` it repeats all of it."""
        return f"python -m benchmarks {self.id}"
