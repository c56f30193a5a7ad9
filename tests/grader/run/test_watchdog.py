"""When a run is stopped: how long a silence may last, by what the run has shown before."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from grader.common import contract
from grader.run import watchdog
from grader.sandbox.run_paths import Folders


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Hears at a second how many updates the workers have made; 20 s of silence are its least patience."""
    monkeypatch.setattr(watchdog, "reference_seconds", lambda profile: 100.0)
    Folders(tmp_path).observe.mkdir()
    with watchdog.Watch(contract.load("fast"), Console(quiet=True)) as watching:
        outside = SimpleNamespace(running={0, 1, 2, 3})
        yield lambda seconds, *updates: watching(seconds, list(updates), outside, Folders(tmp_path))


def test_until_the_second_update_a_minute_may_pass(watch):
    assert watch(1, 0, 0, 0, 0) == "" and watch(59, 0, 0, 0, 0) == ""
    assert watch(60, 1, 1, 1, 0) == "" and watch(119, 1, 1, 1, 0) == ""
    assert watch(121, 1, 1, 1, 0).startswith("Stopped: no update for 61 s.")


def test_after_fast_updates_twenty_seconds_of_silence_are_a_hang(watch):
    assert [watch(at, at, at, at, at) for at in (1, 2, 3)] == ["", "", ""]
    assert watch(22, 3, 3, 3, 3) == ""
    assert "no update for 21 s" in watch(24, 3, 3, 3, 3)


def test_after_slow_updates_it_takes_five_times_as_long(watch):
    for number in range(1, 5):
        assert watch(10 * number, number, number, number, number) == ""
    assert watch(89, 4, 4, 4, 4) == ""
    assert "no update for 51 s" in watch(91, 4, 4, 4, 4)


def test_no_patience_outlasts_the_limit(watch):
    for number in range(1, 5):
        assert watch(100 * number, number, number, number, number) == ""
    assert watch(501, 5, 5, 5, 5).startswith("Stopped after 501 s, 5 times what the reference takes")
