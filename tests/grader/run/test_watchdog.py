"""These tests are about when a run is stopped, and about how long it may make no update before that."""

import json
from types import SimpleNamespace

import pytest

from grader.run.watchdog import Watchdog
from grader.sandbox.run_paths import RunPaths


def stands_in(paths: RunPaths, rank: int, file: str) -> None:
    """Write that a worker's innermost call is in this file."""
    paths.stack(rank).write_text(json.dumps([[file, 1, "load"], ["train.py", 9, "<module>"]]) + "\n")


@pytest.fixture
def check(tmp_path):
    """Return what the watchdog says about a run for which the reference takes 100 s. All workers are in the program.

    The arguments are the seconds so far and the updates made: one number for all workers, or one per worker.
    """
    paths = RunPaths(tmp_path)
    paths.observe.mkdir()
    for rank in range(4):
        stands_in(paths, rank, "train.py")
    watchdog = Watchdog(expected_seconds=100.0)
    outside = SimpleNamespace(running={0, 1, 2, 3})

    def check(seconds: float, *updates: int) -> str | None:
        by_worker = list(updates) if len(updates) > 1 else list(updates) * 4
        return watchdog.check(seconds, by_worker, outside, RunPaths(tmp_path))

    return check


def test_one_minute_may_pass_before_each_of_the_first_two_updates(check):
    assert check(1, 0) is None
    assert check(59, 0) is None
    assert check(60, 1, 1, 1, 0) is None
    assert check(119, 1, 1, 1, 0) is None
    assert check(121, 1, 1, 1, 0).startswith("Stopped: no update for 61 s.")


def test_a_worker_that_compiles_its_network_has_five_minutes(check, tmp_path):
    stands_in(RunPaths(tmp_path), 2, "/lib/torch/_inductor/codecache.py")
    assert check(1, 0) is None
    assert check(299, 0) is None
    assert "no update for 301 s" in check(301, 0)


def test_the_first_minute_begins_when_all_workers_have_imported_their_modules(check, tmp_path):
    stands_in(RunPaths(tmp_path), 2, "<frozen importlib._bootstrap>")
    assert check(200, 0) is None
    stands_in(RunPaths(tmp_path), 2, "train.py")
    assert check(259, 0) is None
    assert "no update for 61 s" in check(261, 0)


def test_slow_imports_do_not_count_as_training_time(check, tmp_path):
    stands_in(RunPaths(tmp_path), 2, "<frozen importlib._bootstrap>")
    assert check(290, 0) is None
    stands_in(RunPaths(tmp_path), 2, "train.py")
    for number in range(1, 10):
        assert check(290 + 50 * number, number) is None
    assert "Stopped after 800 s" in check(800, 10)


def test_before_any_worker_is_seen_nothing_hangs(tmp_path):
    RunPaths(tmp_path).observe.mkdir()
    nobody = SimpleNamespace(running=set())
    assert Watchdog(expected_seconds=100.0).check(200, [0] * 4, nobody, RunPaths(tmp_path)) is None


def test_imports_that_do_not_end_are_stopped_in_the_end(check, tmp_path):
    stands_in(RunPaths(tmp_path), 2, "<frozen importlib._bootstrap>")
    for seconds in (100, 200, 299):
        assert check(seconds, 0) is None
    assert "no update for 61 s" in check(360, 0)


def test_a_run_with_fast_updates_is_stopped_after_20_s_without_one(check):
    for number in range(1, 4):
        assert check(number, number) is None
    assert check(22, 3) is None
    assert "no update for 21 s" in check(24, 3)


def test_a_run_with_slow_updates_is_stopped_after_five_times_the_longest_wait(check):
    for number in range(1, 5):
        assert check(10 * number, number) is None
    assert check(89, 4) is None
    assert "no update for 51 s" in check(91, 4)


def test_a_run_that_still_makes_updates_is_stopped_after_five_times_the_reference_time(check):
    for number in range(1, 5):
        assert check(100 * number, number) is None
    assert check(501, 5).startswith("Stopped after 501 s, 5 times what the reference takes")
