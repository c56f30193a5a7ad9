"""The tests of claims share these functions. They draw noise for made-up runs, and check what a claim says of runs."""

import numpy as np

from benchmarks.experiment.claim import Claim, Runs


def noise(seed: int, size: float = 0.002) -> float:
    """Draw a number from a normal distribution with mean 0 and standard deviation `size`."""
    return size * float(np.random.default_rng(seed).standard_normal())


def noise_vector(seed: int, count: int) -> np.ndarray:
    """Draw `count` numbers from the standard normal distribution."""
    return np.random.default_rng(seed).standard_normal(count)


def check(claim: Claim, runs: Runs, word: str) -> str:
    """Check that the verdict's word is right and that pictures can be drawn. Return the verdict's sentence.

    Runs of one seed cannot show a difference, but they must give a sentence and a picture too.
    """
    verdict = claim.judge(runs)
    assert verdict.word == word
    for some in (runs, {variant: values[:1] for variant, values in runs.items()}):
        assert claim.judge(some).sentence
        picture = claim.picture(some)
        assert picture.alt and picture.caption and "nan" not in picture.alt + picture.caption
        picture.figure.draw_without_rendering()
    return verdict.sentence
