"""Every paper that is cited is in the references exactly once."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ID = re.compile(r"arXiv:(\d{4}\.\d{5}|\d{4}\.\d{4})")


def test_every_cited_paper_is_among_the_references_once():
    references = ID.findall((REPOSITORY / "solutions" / "99_references.py").read_text())
    assert sorted(references) == sorted(set(references))
    folders = ("solutions", "source_code", "grader", "benchmarks")
    cited = {
        (id, str(path.relative_to(REPOSITORY)))
        for folder in folders
        for path in (REPOSITORY / folder).rglob("*.py")
        for id in ID.findall(path.read_text())
        if id not in references
    }
    assert not cited
