"""The journal of a batch is read after a kill, and a damaged journal is refused."""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.batch import journal
from grader.batch.journal import Journal, JournalError, Result, Settings

SETTINGS = Settings(profile="fast", key="a key", seed=3, isolation="sandbox", grader="0" * 64)
RESULTS = [
    Result("anna", "a" * 64, "anna-1", 100.0, True, {"begins": 5.0, "ends": 10.0}, 61.5, ""),
    Result("Zoë \U0001f600 \\xff", "b" * 64, "zoe-2", 0.0, False, {}, 0.0, "train.py: no\u2028such\nthing"),
    Result("x" * 100, "c" * 64, "x-3", 33.25, False, {"begins": 5.0}, 1e-3, '"quoted", =1+1'),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def written(path: Path, results: list[Result] = RESULTS) -> bytes:
    with Journal(path, SETTINGS) as log:
        for result in results:
            log.add(result)
    return path.read_bytes()


def test_added_results_are_read_back(path: Path):
    content = written(path)
    assert journal.read(content) == journal.Content(SETTINGS, RESULTS, len(content))
    with Journal(path, SETTINGS) as log:
        assert list(log.results.values()) == RESULTS
        assert log.results["anna-1"].points == 100
    assert path.read_bytes() == content
    assert journal.read_key(path) == "a key"


def test_the_last_result_of_a_folder_counts_until_it_is_removed(path: Path):
    written(path, [*RESULTS, replace(RESULTS[0], source="b" * 64)])
    with Journal(path, SETTINGS) as log:
        assert log.results[RESULTS[0].folder].source == "b" * 64
    journal.remove_results(path, {RESULTS[0].folder})
    assert journal.read(path.read_bytes()).results == RESULTS[1:]
    journal.remove_results(path.with_name("none"), {"x"})


def test_a_torn_journal_keeps_its_whole_lines(path: Path):
    content = written(path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        lines = content[:length].count(b"\n")
        with Journal(path, SETTINGS) as log:
            assert list(log.results.values()) == RESULTS[: max(0, lines - 1)]
            log.add(RESULTS[2])
        assert journal.read(path.read_bytes()).results == [*RESULTS[: max(0, lines - 1)], RESULTS[2]]


def test_zeros_at_the_end_are_a_torn_line(path: Path):
    content = written(path)
    assert journal.read(content + bytes(4096)).length == len(content)


def test_a_damaged_line_is_reported_by_its_number(path: Path):
    lines = written(path).splitlines(keepends=True)
    for number in (2, 3, 4):
        damaged = b"".join([*lines[: number - 1], lines[number - 1].replace(b'"points"', b'"ponits"'), *lines[number:]])
        path.write_bytes(damaged)
        with pytest.raises(JournalError, match=f"line {number} of the journal is damaged: delete that line"):
            Journal(path, SETTINGS)
        assert path.read_bytes() == damaged


@cache
def real() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return written(Path(folder, "journal.jsonl"))


@given(content=st.binary(max_size=300))
def test_any_bytes_are_read_or_reported(content: bytes):
    clear(content)


@given(
    keep=st.integers(0, 900), middle=st.binary(max_size=20) | st.sampled_from([b"\n", b"{}\n", b"[" * 9999, b"NaN"]),
    skip=st.integers(0, 900),
)  # fmt: skip
def test_a_journal_with_any_part_replaced_is_read_or_reported(keep: int, middle: bytes, skip: int):
    clear(real()[:keep] + middle + real()[skip:])


def clear(content: bytes) -> None:
    try:
        content_read = journal.read(content)
    except JournalError as error:
        assert "damaged" in str(error)
        assert "\n" not in str(error)
    else:
        assert content[: content_read.length].count(b"\n") == (
            1 + len(content_read.results) if content_read.settings else 0
        )
        assert b"\n" not in content[content_read.length :]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 4}, "this batch began with another seed: give the same options as then, or another --output"),
        ({"key": "secret", "profile": "full"}, "this batch began with another profile and key: give"),
        ({"isolation": "no_sandbox"}, "this batch began with another isolation: give"),
        ({"grader": "1" * 64}, "the grader has changed since this batch began: use another --output"),
    ],
)
def test_other_settings_are_refused_without_showing_a_key(changed: dict, message: str, path: Path):
    content = written(path)
    with pytest.raises(JournalError) as refused:
        Journal(path, replace(SETTINGS, **changed))
    assert str(refused.value).startswith(message)
    assert "a key" not in str(refused.value)
    assert "secret" not in str(refused.value)
    assert path.read_bytes() == content
