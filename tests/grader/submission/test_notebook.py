"""Answers are read from notebooks, even if a learner has deleted, copied, renamed or retyped cells."""

import json

import nbformat
import pytest

from grader.submission import notebook
from grader.submission.notebook import NotebookError

IDS = ["ring_step", "warmup_factor"]
RELEASED = {"ring_step": "def ring_step(chunks):\n    return chunks", "warmup_factor": "def warmup_factor(step): ..."}


def cell(grade_id: str, source: str | list[str], **changes: object) -> dict:
    nbgrader = {"grade_id": grade_id, "grade": False, "locked": False, "solution": True, "schema_version": 3}
    made = nbformat.v4.new_code_cell(source, metadata={"nbgrader": nbgrader})
    return made | {"id": f"cell-{grade_id}"} | changes


def content(cells: list, **changes: object) -> bytes:
    """Return a notebook as JupyterLab writes it, with these cells among others."""
    others = [nbformat.v4.new_markdown_cell("# Ring"), nbformat.v4.new_code_cell("import torch", id="cell-imports")]
    made = nbformat.v4.new_notebook() | {"cells": [others[0], *cells, others[1]]}
    return json.dumps(made | changes, indent=1).encode()


def released() -> list[dict]:
    return [cell(name, source) for name, source in RELEASED.items()]


def kinds(result: notebook.Answers) -> list[tuple[str, str]]:
    return [(problem.id, problem.kind) for problem in result.problems]


def test_a_notebook_as_it_was_released_has_all_answers_and_no_problem():
    made = content(released())
    nbformat.validate(nbformat.reads(made.decode(), as_version=4))
    assert notebook.answers(made, IDS) == notebook.Answers(RELEASED, [])


def test_a_source_may_be_a_list_of_lines_and_cells_may_be_moved():
    cells = [cell(name, source.splitlines(keepends=True)) for name, source in RELEASED.items()]
    assert notebook.answers(content(cells[::-1]), IDS) == notebook.Answers(RELEASED, [])


def test_a_cell_that_was_deleted_is_named_and_the_other_counts():
    result = notebook.answers(content(released()[1:]), IDS)
    assert kinds(result) == [("ring_step", "missing")]
    assert list(result.sources) == ["warmup_factor"]


def test_a_cell_doubled_without_a_change_counts():
    result = notebook.answers(content([*released(), released()[0]]), IDS)
    assert result.sources == RELEASED
    assert kinds(result) == [("ring_step", "duplicated")]


def test_of_two_different_cells_with_one_name_none_counts():
    for other in (cell("ring_step", "1"), cell("ring_step", RELEASED["ring_step"], cell_type="markdown")):
        result = notebook.answers(content([*released(), other]), IDS)
        assert list(result.sources) == ["warmup_factor"]
        assert kinds(result) == [("ring_step", "duplicated")]
        assert "none counts" in result.problems[0].message


def test_a_cell_without_its_name_is_known_by_its_cell_id():
    ids = [f"cell-{name}" for name in IDS]
    renamed = [dict(released()[0], metadata={}), cell("my_warmup", RELEASED["warmup_factor"], id=ids[1])]
    result = notebook.answers(content(renamed), ids)
    assert result.sources == dict(zip(ids, RELEASED.values(), strict=True))
    assert kinds(result) == [(id, "renamed") for id in ids]


def test_a_name_in_nbgraders_metadata_goes_before_a_cell_id():
    result = notebook.answers(content([cell("ring_step", "right"), cell("x", "wrong", id="ring_step")]), ["ring_step"])
    assert (result.sources, result.problems) == ({"ring_step": "right"}, [])


def test_a_cell_that_carries_another_known_name_is_not_taken_for_this_one():
    result = notebook.answers(content([cell("warmup_factor", "1", id="ring_step")]), IDS)
    assert result.sources == {"warmup_factor": "1"}
    assert kinds(result) == [("ring_step", "missing")]


def test_a_name_that_nobody_knows_is_shown_where_one_is_missing():
    result = notebook.answers(content([cell("ring\x1b[2Jstep", "1"), *released()[1:]]), IDS)
    assert r"renamed 'ring\x1b[2Jstep'?" in result.problems[0].message


@pytest.mark.parametrize("type", ["markdown", "raw", None, 3, {}])
def test_a_cell_of_another_type_does_not_count(type: object):
    result = notebook.answers(content([cell("ring_step", "1", cell_type=type), *released()[1:]]), IDS)
    assert kinds(result) == [("ring_step", "retyped")]
    assert list(result.sources) == ["warmup_factor"]


@pytest.mark.parametrize("source", [None, 3, {}, ["a", 3], [["a"]], "a\0b", "\ud800", ["\udfff"]])
def test_a_source_that_is_not_text_does_not_count(source: object):
    result = notebook.answers(content([dict(released()[0], source=source), *released()[1:]]), IDS)
    assert kinds(result) == [("ring_step", "malformed")]
    assert list(result.sources) == ["warmup_factor"]


def test_64_kib_of_source_count_and_a_byte_more_does_not():
    just, more = "é" * (notebook.MAX_SOURCE_BYTES // 2), "é" * (notebook.MAX_SOURCE_BYTES // 2) + "x"
    result = notebook.answers(content([cell("ring_step", just), cell("warmup_factor", more)]), IDS)
    assert result.sources == {"ring_step": just}
    assert kinds(result) == [("warmup_factor", "too large")]


def test_what_is_no_cell_is_left_out():
    junk = [None, 1, "cell", [], {}, {"metadata": 3}, {"metadata": {"nbgrader": []}}, {"id": []}]
    assert notebook.answers(content(junk + released()), IDS) == notebook.Answers(RELEASED, [])


def test_a_byte_order_mark_and_huge_numbers_do_not_matter():
    made = content(released(), metadata={"one": 1, "huge": "HUGE"}).replace(b'"HUGE"', b"9" * 5000)
    made = made.replace(b'"one": 1', b'"one": [1e999999, -1e999999, NaN]')
    assert notebook.answers(b"\xef\xbb\xbf" + made, IDS) == notebook.Answers(RELEASED, [])


GARBAGE = {
    "empty": (b"", "not JSON: line 1"),
    "no JSON": (b'{"cells": [\n}', "not JSON: line 2"),
    "a NUL": (b'{"cells": \0}', "not JSON"),
    "not UTF-8": (b'{"cells": "\xff"}', "not text in UTF-8"),
    "UTF-16": ("{}".encode("utf-16"), "not text in UTF-8"),
    "a list": (b"[]", "has no cells"),
    "no cells": (b'{"nbformat": 4}', "has no cells"),
    "format 3": (b'{"nbformat": 3, "cells": []}', "not in Jupyter's format 4"),
    "format {}": (b'{"nbformat": {}, "cells": []}', "not in Jupyter's format 4"),
    "a name twice": (b'{"nbformat": 4, "cells": [], "cells": []}', "a name twice"),
    "deep lists": (b"[" * 5_000_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 1_000_000, "nested too deeply"),
    "many cells": (content([{}] * 1000), "more than 1,000 cells"),
    "too large": (b" " * (5 * 2**20 + 1), "more than 5,242,880 bytes"),
    "a long number": (b"9" * 5_000_000, "has no cells"),
    "a million cells": (b'{"nbformat": 4, "cells": [' + b"{}," * 1_700_000 + b"{}]}", "more than 1,000 cells"),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_one_line(kind: str):
    made, message = GARBAGE[kind]
    with pytest.raises(NotebookError) as refused:
        notebook.answers(made, IDS)
    assert message in str(refused.value)
    assert str(refused.value).isprintable()
