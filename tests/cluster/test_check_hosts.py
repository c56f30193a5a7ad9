"""A host that misses a question is asked once more before it is taken for one that is away."""

import subprocess

import pytest

from cluster import check_hosts


@pytest.mark.parametrize(("statuses", "answers"), [([0], True), ([255, 0], True), ([255, 255], False), ([1], False)])
def test_a_host_is_asked_twice_if_ssh_does_not_reach_it(monkeypatch, statuses: list[int], answers: bool):
    given = iter(statuses)
    monkeypatch.setattr(check_hosts, "_ssh", lambda *_: subprocess.CompletedProcess([], next(given), "", "refused"))
    assert (check_hosts.unreachable("beta") == "") == answers
    assert list(given) == []
