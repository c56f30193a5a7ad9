"""A batch is interrupted or killed. Nothing stays running, and the same command continues."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import until
from tests.support.batch_class import BATCH, TWO_SLOTS, Class, group_of, in_group, start
from tests.support.processes import alive


def test_after_ctrl_c_nothing_runs_and_the_batch_can_continue(group: Class):
    for name in ("anna", "bo"):
        group.add(name)
    group.add("slow", seconds=600)
    process = start(BATCH, group.root, stderr=subprocess.PIPE)
    until(lambda: len(group.journaled()) == 2 and "slow" in group.begun())
    time.sleep(3)  # While a result is taken in, Python may lose the interrupt.
    os.killpg(process.pid, signal.SIGINT)
    _, message = process.communicate(timeout=120)
    assert (process.returncode, message) == (130, "grader: interrupted; the same command goes on where this one was\n")
    until(lambda: not in_group(process.pid))
    assert not (group.output / "work").exists()
    assert not (group.output / "results.csv").exists()
    group.add("slow")
    assert group.grade()[0] == 0
    assert sorted(group.begun()) == ["anna", "bo", "slow", "slow"]


def test_a_sandboxed_run_ends_with_its_slot_or_its_batch(group: Class):
    group.add("anna")
    process = start("batch_class.Class(sys.argv[1]).grade(does=batch_class.sandboxed)", group.root)
    until(lambda: group.begun() == ["anna"])
    time.sleep(1)
    assert alive("sleep 86394")
    os.kill(group.pids()[0], signal.SIGKILL)
    until(lambda: not alive("sleep 86394"))
    until(lambda: group.begun() == ["anna", "anna"])
    assert alive("sleep 86394")
    process.kill()
    process.wait()
    until(lambda: not alive("sleep 86394") and not in_group(process.pid))


FORKS = """
for root in map(str.strip, sys.stdin):
    child = os.fork()
    os.setpgid(child, child)
    if child == 0:
        os._exit(batch_class.Class(root).grade()[0])
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
KILLS, MEMBERS = 10, 14


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Start a batch for each line of the input. The process imports PyTorch once for all batches."""
    process = start(FORKS, tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def test_a_batch_killed_at_random_moments_loses_no_result(group: Class, forks):
    draw = random.Random(1)
    for number in range(MEMBERS):
        group.add(f"s{number}", seconds=draw.uniform(0.2, 0.4))
    for _ in range(KILLS):
        results, begun = group.journaled(), len(group.begun())
        print(group.root, file=forks.stdin, flush=True)
        leader = int(forks.stdout.readline())
        wait_a_random_while(group, leader, begun, draw)
        with contextlib.suppress(ProcessLookupError):  # The batch may have graded all submissions and ended.
            os.killpg(leader, signal.SIGKILL)
        assert int(forks.stdout.readline()) in (-signal.SIGKILL, 0)
        assert not set(results) & set(group.begun()[begun:])
        assert group.journaled()[: len(results)] == results
    assert 0 < len(group.journaled()) < MEMBERS < len(group.begun())  # The kills came while the batch was working.
    assert group.grade()[0] == 0
    names = sorted(f"s{number}" for number in range(MEMBERS))
    assert [row["name"] for row in group.rows()] == names == sorted(group.journaled())
    assert {group.report(name)["points"] for name in names} == {100}
    assert len(group.begun()) <= MEMBERS + KILLS * len(TWO_SLOTS)


def wait_a_random_while(group: Class, leader: int, begun: int, draw: random.Random) -> None:
    """Wait until up to three more submissions have begun, and then a little longer.

    If no more submissions are to begin, wait for up to a second, which is a part of the batch's start.
    """
    more, deadline = draw.randrange(4), time.monotonic() + 300
    while len(group.begun()) < begun + more and group_of(leader) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(draw.uniform(0, 0.3 if more else 1))
