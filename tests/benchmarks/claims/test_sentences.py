"""The sentence of each claim is short, and the saved results say so."""

import pytest

from benchmarks import claims
from benchmarks.claims import sentences
from benchmarks.experiment import runner


@pytest.mark.parametrize("id", claims.IDS)
def test_the_saved_results_say_what_the_sentence_says(id: str):
    text, true = sentences.said(id, runner.saved(claims.get(id)).runs)
    assert true, f"{id}: the saved results no longer say: {text}"
    assert len(text.split()) <= sentences.WORDS, f"{id}: {len(text.split())} words: {text}"
    assert text.endswith(".") and text.count(".") - text.count(". ") <= 1 + sum(part.isdigit() for part in text)
