"""Each term of the glossary is explained before it is used."""

from pathlib import Path

from grader.notebooks.build import SOLUTIONS
from lessons import glossary
from lessons.glossary import TERMS, Term


def test_each_term_is_in_bold_at_its_first_use_in_the_lesson_that_the_glossary_names():
    assert not glossary.unexplained(SOLUTIONS)


def test_each_term_is_there_once_and_has_a_meaning():
    names = [term.name.lower() for term in TERMS]
    assert len(set(names)) == len(names) >= 40
    assert all(term.meaning and not term.meaning.endswith(".") for term in TERMS)


def test_a_term_that_is_used_before_it_is_explained_is_found(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(glossary, "TERMS", [Term("warmup", "", "01"), Term("ZeRO", "", "01"), Term("ring", "", "01")])
    (tmp_path / "00_first.py").write_text("# %% [markdown]\n# # Warmup\n#\n# We let the warmup go to zero.\n")
    (tmp_path / "01_second.py").write_text(
        "# %% [markdown]\n# **Warmup** is this, **ZeRO** is that, and a ring is round.\n"
    )
    assert glossary.unexplained(tmp_path) == [
        "warmup: 00: ... We let the warmup go to zero. ...",
        "ring: 01: ... rmup** is this, **ZeRO** is that, and a ring is round. ...",
    ]
