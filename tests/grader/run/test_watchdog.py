"""When a run is stopped: how long a silence may last, by what the run has shown before."""

from types import SimpleNamespace

import pytest

from grader.run.watchdog import Watchdog
from grader.sandbox.run_paths import RunPaths


@pytest.fixture
def watch(tmp_path):
    """Hears at a second how many updates the workers have made; 20 s of silence are its least patience."""
    RunPaths(tmp_path).observe.mkdir()
    watchdog = Watchdog(expected_seconds=100.0)
    outside = SimpleNamespace(running={0, 1, 2, 3})
    return lambda seconds, *updates: watchdog.check(seconds, list(updates), outside, RunPaths(tmp_path))


def test_until_the_second_update_a_minute_may_pass(watch):
    assert watch(1, 0, 0, 0, 0) is None and watch(59, 0, 0, 0, 0) is None
    assert watch(60, 1, 1, 1, 0) is None and watch(119, 1, 1, 1, 0) is None
    assert watch(121, 1, 1, 1, 0).startswith("Stopped: no update for 61 s.")


def test_after_fast_updates_twenty_seconds_of_silence_are_a_hang(watch):
    assert [watch(at, at, at, at, at) for at in (1, 2, 3)] == [None, None, None]
    assert watch(22, 3, 3, 3, 3) is None
    assert "no update for 21 s" in watch(24, 3, 3, 3, 3)


def test_after_slow_updates_it_takes_five_times_as_long(watch):
    for number in range(1, 5):
        assert watch(10 * number, number, number, number, number) is None
    assert watch(89, 4, 4, 4, 4) is None
    assert "no update for 51 s" in watch(91, 4, 4, 4, 4)


def test_no_patience_outlasts_the_limit(watch):
    for number in range(1, 5):
        assert watch(100 * number, number, number, number, number) is None
    assert watch(501, 5, 5, 5, 5).startswith("Stopped after 501 s, 5 times what the reference takes")
