"""What the tests of claims share: noise for made-up runs, and a check of what a claim says of them."""

import numpy as np

from benchmarks.experiment.claim import Claim, Runs


def noise(seed: int, size: float = 0.002) -> float:
    """A number drawn from a normal distribution with standard deviation `size`."""
    return size * float(np.random.default_rng(seed).standard_normal())


def noise_vector(seed: int, count: int) -> np.ndarray:
    """So many numbers drawn from the standard normal distribution."""
    return np.random.default_rng(seed).standard_normal(count)


def check(claim: Claim, runs: Runs, word: str) -> str:
    """The verdict's sentence, once its word is right and pictures can be drawn.

    The runs of one seed, which cannot show a difference, must give a sentence and a picture too.
    """
    verdict = claim.judge(runs)
    assert verdict.word == word
    for some in (runs, {variant: values[:1] for variant, values in runs.items()}):
        assert claim.judge(some).sentence
        picture = claim.picture(some)
        assert picture.alt and picture.caption and "nan" not in picture.alt + picture.caption
        picture.figure.draw_without_rendering()
    return verdict.sentence
