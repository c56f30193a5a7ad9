"""Runs a claim's experiment for each variant and seed, keeps one file per run, and reads the files back."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.experiment import results
from benchmarks.experiment.claim import Claim, Runs, Settings, Values, Verdict


@dataclass(frozen=True)
class Series:
    """The measured results of a claim. `files` holds the files' contents by variant, in the order of the seeds."""

    claim: Claim
    files: dict[str, list[dict]]

    @property
    def runs(self) -> Runs:
        """The measured values by variant. Only those seeds count that all measured variants have.

        If a series was interrupted, its last round is incomplete and does not count. Variants are compared only with
        those that need the same number of seeds. A variant that needs two seeds thus removes none from those that need
        five.
        """
        shared = {}  # the seeds that count, by the number of seeds needed
        for variant, files in self.files.items():
            if files:
                needed, seeds = self.claim.seeds_of(variant), {file["seed"] for file in files}
                shared[needed] = shared.get(needed, seeds) & seeds
        return {
            variant: [file["values"] for file in files if file["seed"] in shared[self.claim.seeds_of(variant)]]
            for variant, files in self.files.items()
        }

    @property
    def missing(self) -> list[str]:
        """The variants that have no run in `runs`."""
        runs = self.runs
        return [variant for variant in self.claim.variants if not runs[variant]]

    @property
    def seeds(self) -> int:
        """The number of seeds that all variants have. Variants in `seeds_to_choose` need fewer and do not count."""
        runs, few = self.runs, self.claim.seeds_to_choose
        return min((len(values) for variant, values in runs.items() if variant not in few), default=0)

    @property
    def whole_rounds(self) -> set[int]:
        """The seeds of which every variant has a result."""
        return set.intersection(*({file["seed"] for file in files} for files in self.files.values()))

    @property
    def provisional(self) -> str:
        """A few words that say why the verdict is provisional; empty if it is final."""
        if self.seeds < self.claim.seeds:
            return f"{self.seeds} of {self.claim.seeds} seeds"
        for variant, needed in self.claim.seeds_to_choose.items():
            if (seeds := len(self.runs[variant])) < needed:
                return f"{seeds} of {needed} seeds of {variant}"
        stored = (file["settings"] for files in self.files.values() for file in files)
        small = {name for settings in stored for name in below(settings, self.claim.settings)}
        return f"smaller than declared: {', '.join(sorted(small))}" if small else ""

    @property
    def machine(self) -> str:
        """The description of the machine that measured the newest result; empty if there is no result.

        If the rounds may come from different machines, there is a description for each round.
        """
        newest: dict[int | None, dict] = {}
        for file in sorted(
            itertools.chain.from_iterable(self.files.values()), key=lambda file: file["machine"]["date"]
        ):
            newest[file["seed"] if self.claim.rounds_apart else None] = file["machine"]
        shown = self.claim.rounds_apart and len(newest) > 1
        told = {seed: results.described(machine) for seed, machine in newest.items()}
        return "; ".join(f"round {seed + 1}: {told[seed]}" if shown else told[seed] for seed in sorted(told))

    @property
    def verdict(self) -> Verdict | None:
        """The claim's verdict, or None while a variant has no run."""
        return None if self.missing else self.claim.judge(self.runs)


def below(settings: Settings, least: Settings) -> list[str]:
    """The names of the numbers in `least` that are missing or smaller in `settings`."""
    numbers = {name: value for name, value in least.items() if isinstance(value, int | float)}
    return [name for name, value in numbers.items() if settings.get(name, -1) < value]


def measure(
    claim: Claim, folder: Path, settings: Settings, seeds: Sequence[int], variants: Sequence[str],
    said: Callable[[str], None] = lambda text: None,
) -> None:  # fmt: skip
    """Measure the results that `folder` lacks, and replace those that do not suffice.

    A result does not suffice if its settings are smaller. If the claim measures time, it must also come from this kind
    of machine. This is not asked of a whole round of one kind of machine, if the claim judges each round by itself. A
    file appears whole or not at all. `said` is called with a sentence about each run.
    """
    todo = list(missing(claim, folder, settings, seeds, variants))
    if old := sum(path.exists() for _, _, path in todo):
        said(f"{claim.id}: {old} of its results have smaller settings or are another machine's, and are measured anew")
    for number, (variant, seed, path, values, seconds) in enumerate(_measured(claim, settings, todo), 1):
        # "arm" is the variant. The key is older than this word, and many results have it.
        content = {"claim": claim.id, "arm": variant, "seed": seed, "settings": settings, "values": values}
        results.write(path, {**content, "seconds": round(seconds, 2)})
        said(f"{claim.id} {variant}, seed {seed}: {seconds:.1f} s ({number} of {len(todo)})")


def _measured(
    claim: Claim, settings: Settings, todo: list[tuple[str, int, Path]]
) -> Iterator[tuple[str, int, Path, Values, float]]:  # fmt: skip
    """Yield each run of `todo` with its values and seconds, as soon as it has been measured.

    If variants share a launch, its seconds are divided equally among them.
    """
    for seed, runs in itertools.groupby(todo, key=lambda run: run[1]):
        paths = {variant: path for variant, _, path in runs}
        launches = [list(paths)] if claim.run_all else [[variant] for variant in paths]
        for variants in launches:
            started = time.perf_counter()
            values = _run(claim, variants, seed, settings)
            seconds = (time.perf_counter() - started) / len(variants)
            yield from ((variant, seed, paths[variant], values[variant], seconds) for variant in variants)


def _run(claim: Claim, variants: list[str], seed: int, settings: Settings) -> dict[str, Values]:
    """Measure variants that share one launch. Without `run_all` this is a single variant."""
    if claim.run_all:
        return claim.run_all(seed, settings)
    return {variant: claim.run(variant, seed, settings) for variant in variants}


def missing(
    claim: Claim, folder: Path, settings: Settings, seeds: Sequence[int], variants: Sequence[str]
) -> Iterator[tuple[str, int, Path]]:  # fmt: skip
    """Yield the variant, seed and path of each run without a sufficient result.

    All variants of one seed come before the next seed.
    """
    here = results.kind(results.machine()) if claim.timing_sensitive else None
    whole = saved(claim, folder).whole_rounds if claim.rounds_apart else set()
    for number, seed in enumerate(seeds):
        kind = None if seed in whole else here
        for variant in variants:
            path = folder / f"{variant}-{seed}.json"
            if variant in claim.seeds_to_choose and number >= claim.seeds_to_choose[variant]:
                continue
            if not path.exists() or not _usable(json.loads(path.read_text()), settings, kind):
                yield variant, seed, path


def _usable(file: dict, settings: Settings, kind: tuple[object, ...] | None) -> bool:
    """Whether a result's settings are large enough, and it comes from this kind of machine.

    Any machine will do if `kind` is None.
    """
    return not below(file["settings"], settings) and kind in (None, results.kind(file["machine"]))


def saved(claim: Claim, folder: Path | None = None) -> Series:
    """The committed results of a claim, or those in another folder.

    If the claim measures time, only results from one kind of machine count: the kind with the most results. If the
    claim judges each round by itself, this is the kind with the most results of the round.
    """
    folder = folder or results.RESULTS / claim.id
    files = {variant: _read(folder, variant) for variant in claim.variants}
    return Series(claim, _of_one_kind(files, claim.rounds_apart) if claim.timing_sensitive else files)


def _of_one_kind(files: dict[str, list[dict]], rounds_apart: bool) -> dict[str, list[dict]]:
    """The results that come from the most frequent kind of machine, of each round or of all rounds."""

    def group(file: dict) -> int | None:
        return file["seed"] if rounds_apart else None

    counts: dict[int | None, Counter] = {}
    for file in itertools.chain.from_iterable(files.values()):
        counts.setdefault(group(file), Counter())[results.kind(file["machine"])] += 1
    most = {of: kinds.most_common(1)[0][0] for of, kinds in counts.items()}
    return {
        variant: [file for file in found if results.kind(file["machine"]) == most[group(file)]]
        for variant, found in files.items()
    }


def _read(folder: Path, variant: str) -> list[dict]:
    """The contents of a variant's files.

    `results.read` also reads files of variants whose names only begin like this one. They are left out here.
    """
    return [file for file in results.read(folder, variant) if file["arm"] == variant]


def settings(claim: Claim, quick: bool, device: str) -> Settings:
    """The settings of a full or a quick run on `device` (auto, cpu or cuda)."""
    return {**claim.settings, **(claim.quick if quick else {}), "device": device}
