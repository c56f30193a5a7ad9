"""Compares texts by fingerprints of all their short parts, as MOSS does (Schleimer, Wilkerson and Aiken 2003, SIGMOD).

Each pair is looked at in two views, and the more similar one counts. Without names and comments, a text is found again
whose names and comments have changed. As written, a text is found again whose lines have another order. What all
learners were given does not count.
"""

import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from copydetect import CodeFingerprint, compare_files
from copydetect.utils import get_token_coverage

from grader.classroom.similarity.documents import Document

ALL = 1  # of so many fingerprints one is taken; with more, the result would depend on Python's random hashes
MIN_OWN = 150  # characters of a text that are the student's own; less cannot be compared


@dataclass(frozen=True)
class View:
    """A way to look at a text. Common parts of fewer than `noise` characters do not count.

    Without names, copydetect replaces each name by one letter, and leaves out comments and spaces.
    """

    noise: int
    names: bool

    def fingerprint(self, text: str) -> CodeFingerprint:
        """The fingerprint of a text in this view."""
        text = io.StringIO(text)
        return CodeFingerprint("text.py", self.noise, ALL, language="python", filter=not self.names, fp=text)

    def own_fingerprint(self, text: str, given: set[int]) -> CodeFingerprint:
        """The fingerprint of a text, without what was given to all.

        copydetect's own argument for given code removes only one of several equal fingerprints.
        """
        found = self.fingerprint(text)
        for common in found.hashes & given:
            del found.hash_idx[common]
        found.hashes = found.hashes - given
        found.token_coverage = get_token_coverage(found.hash_idx, self.noise, len(found.filtered_code))
        return found


WITHOUT_NAMES, AS_WRITTEN = View(15, names=False), View(25, names=True)
VIEWS = (WITHOUT_NAMES, AS_WRITTEN)


@dataclass(frozen=True)
class Pair:
    """Two texts and the parts that they have in common.

    `similarity` is the geometric mean of the shares of both texts that are also in the other one, 0 to 1, in the view
    in which they are more similar. `lines` holds for each text the numbers of the lines, from 0, with a common part.
    """

    one: Document
    other: Document
    similarity: float
    lines: tuple[set[int], set[int]]


@dataclass(frozen=True)
class Group:
    """The pairs of one kind of text of one assignment, the most similar first. `short` names texts too short for it."""

    assignment: str
    kind: str
    pairs: list[Pair]
    short: list[Document]


Prints = dict[Document, tuple[CodeFingerprint, ...]]  # one fingerprint for each view


def groups(documents: Iterable[Document], given: Iterable[str]) -> Iterator[Group]:
    """Compare all texts of the same kind and assignment. Two texts of older courses are not compared."""
    documents, given = list(documents), list(given)
    common = [set().union(*(view.fingerprint(text).hashes for text in given)) for view in VIEWS]
    for assignment, kind in sorted({(document.assignment, document.kind) for document in documents}):
        own = [document for document in documents if (document.assignment, document.kind) == (assignment, kind)]
        prints = {
            document: tuple(
                view.own_fingerprint(document.text, hashes) for view, hashes in zip(VIEWS, common, strict=True)
            )
            for document in own
        }
        short = [document for document in own if prints[document][0].token_coverage < MIN_OWN]
        compared = [document for document in own if document not in short]
        pairs = [_pair(*both, prints) for both in combinations(compared, 2) if _may_be_compared(*both)]
        yield Group(assignment, kind, sorted(pairs, key=lambda pair: -pair.similarity), short)


def _may_be_compared(one: Document, other: Document) -> bool:
    """Whether two texts are worth comparing. A student who takes the course again may use old work."""
    return one.student != other.student and not (one.year and other.year)


def _pair(one: Document, other: Document, prints: Prints) -> Pair:
    found = [compare_files(*both) for both in zip(prints[one], prints[other], strict=True)]
    _, shares, slices = max(found, key=lambda result: math.prod(result[1]))
    lines = (_lines(one.text, slices[0]), _lines(other.text, slices[1]))
    return Pair(one, other, float(math.sqrt(math.prod(shares))), lines)


def _lines(text: str, slices: np.ndarray) -> set[int]:
    """The numbers of the lines that hold a part of a slice. `slices` has a row of first and a row of last places."""
    if not len(slices):
        return set()
    places = zip(*slices.astype(int).tolist(), strict=True)
    return {line for first, last in places for line in range(text.count("\n", 0, first), text.count("\n", 0, last) + 1)}
