"""Slots run on this machine, and on clusters of several machines."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import psutil
import pytest

from grader.__main__ import main
from grader.batch import dask_cluster
from grader.batch.dask_cluster import Slot
from tests.conftest import until
from tests.support.batch_class import BATCH, CORES, Class, start


def test_slots_share_the_cores_and_gpus():
    cores, gpus = list(range(18)), [f"GPU-{number}" for number in range(8)]
    parts = [dask_cluster.share(cores, number, 4) for number in range(4)]
    assert [*chain(*parts)] == cores
    assert {len(part) for part in parts} == {4, 5}
    assert [dask_cluster.share(gpus, number, 2) for number in range(2)] == [gpus[:4], gpus[4:]]
    here = dask_cluster.slots_of_this_machine()
    assert len(here) == 1 or all(len(slot.gpus or slot.cores) >= 4 for slot in here)
    assert [*chain(*(slot.cores for slot in here))] == CORES
    assert len(dask_cluster.slots_of_this_machine(max_slots=1)) == 1


def listening() -> set[str]:
    """Return the addresses at which this process and its descendants listen."""
    addresses = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # The process may just have ended.
            addresses |= {
                connection.laddr.ip
                for connection in process.net_connections("inet")
                if connection.status == psutil.CONN_LISTEN
            }
    return addresses


def test_a_local_cluster_keeps_to_its_cores_and_to_the_loopback(tmp_path: Path):
    machine = [Slot(CORES[:1], []), Slot(CORES[-1:], ["GPU-1", "GPU-3"])]
    with dask_cluster.local_cluster(machine, tmp_path / "work") as client:
        assert list(dask_cluster.count_slots(client).values()) == [1, 1]
        assert listening() == {"127.0.0.1"}
        tied = client.run(lambda: (sorted(os.sched_getaffinity(0)), os.environ.get("CUDA_VISIBLE_DEVICES")))
    assert sorted(tied.values(), key=str) == sorted([(CORES[:1], None), (CORES[-1:], "GPU-1,GPU-3")], key=str)
    assert not (tmp_path / "work").exists()


def test_only_processes_of_the_killed_batch_are_ended(tmp_path: Path):
    (tmp_path / "work" / "dask").mkdir(parents=True)
    leftover, other = (
        subprocess.Popen(["sleep", "600"], env={"GRADER_OBSERVE": f"{tmp_path}/{folder}/observe"})
        for folder in ("work", "works")
    )
    # The environment is empty while a process starts.
    until(lambda: all(psutil.Process(process.pid).environ() for process in (leftover, other)))
    dask_cluster.clear_leftovers(tmp_path / "work")
    leftover.wait(timeout=10)  # The exit status may already be lost to the process that killed it.
    assert other.poll() is None
    assert not (tmp_path / "work").exists()
    other.kill()
    other.wait()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[subprocess.Popen, str]]:
    """Yield a Dask scheduler like that of a cluster of machines, and its address."""
    file = tmp_path / "scheduler.json"
    line = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]
    process = subprocess.Popen([Path(sys.executable).with_name("dask"), *line], stderr=subprocess.DEVNULL)
    until(lambda: file.exists() and file.read_text().endswith("}"))  # Dask first opens the file, and then writes it.
    yield process, json.loads(file.read_text())["address"]
    process.kill()
    process.wait()


@pytest.fixture
def machines(scheduler, tmp_path: Path) -> Iterator[list[subprocess.Popen]]:
    """Yield two machines. Each of them offers at least one slot to the scheduler."""
    program = "from grader.batch import dask_cluster; dask_cluster.join(sys.argv[2])"
    joined = [start(program, tmp_path, scheduler[1]) for _ in range(2)]
    with dask_cluster.remote_cluster(scheduler[1]) as client:
        until(lambda: len(dask_cluster.count_slots(client)) >= 2)
    yield joined
    for machine in joined:
        os.killpg(machine.pid, signal.SIGKILL)
        machine.wait()


def test_a_cluster_that_loses_a_machine_grades_the_whole_class(group: Class, scheduler, machines):
    for number in range(6):
        group.add(f"s{number}", seconds=1)
    batch = start(BATCH, group.root, "--scheduler", scheduler[1])
    until(lambda: len(set(group.pids())) >= 2)
    os.killpg(machines[0].pid, signal.SIGKILL)
    assert batch.wait(timeout=120) == 0
    assert {row["name"]: row["points"] for row in group.rows()} == {f"s{number}": "100" for number in range(6)}
    assert len(group.begun()) <= 6 + len(dask_cluster.slots_of_this_machine())


def test_a_lost_scheduler_is_reported_and_the_batch_can_continue(group: Class, scheduler, machines):
    group.add("anna")
    group.add("slow", seconds=600)
    batch = start(BATCH, group.root, "--scheduler", scheduler[1], stderr=subprocess.PIPE)
    until(lambda: "slow" in group.begun() and group.journaled() == ["anna"])
    scheduler[0].kill()
    _, message = batch.communicate(timeout=120)
    assert (batch.returncode, message) == (
        2, "grader: the Dask scheduler is lost; when it is there again, the same command goes on\n"
    )  # fmt: skip
    group.add("slow")
    assert group.grade()[0] == 0
    assert group.begun().count("anna") == 1


def test_a_machine_offers_its_slots_again_when_the_scheduler_is_back(scheduler, tmp_path: Path):
    process, address = scheduler
    said = tmp_path / "said"
    program = (
        "from grader.batch import dask_cluster; dask_cluster.join(sys.argv[2], lambda text: print(text, flush=True))"
    )
    with said.open("w") as file:
        machine = start(program, tmp_path, address, stdout=file)
    again = [Path(sys.executable).with_name("dask"), "scheduler", "--host", "127.0.0.1", "--port"]
    again += [address.rpartition(":")[2], "--no-dashboard"]
    until(lambda: said.read_text().count(f"joined {address}\n") == 1)
    process.kill()
    process.wait()
    second = subprocess.Popen(again, stderr=subprocess.DEVNULL)
    try:
        until(lambda: said.read_text().count(f"joined {address}\n") == 2, 200)
    finally:
        for started in (second, machine):
            started.kill()
            started.wait()


def test_batch_reports_a_missing_scheduler(group: Class, capfd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    group.add("anna")
    assert group.grade("--scheduler", "tcp://127.0.0.1:9")[0] == 2
    assert capfd.readouterr().err == (
        "grader: no Dask scheduler answers at tcp://127.0.0.1:9: start one with `dask scheduler`, and give both the "
        "same DASK_CONFIG\n"
    )


def test_join_reports_a_missing_scheduler(capfd, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    assert main(["join", "nowhere://1"]) == 2
    assert capfd.readouterr().err == (
        "grader: no Dask scheduler answers at nowhere://1: start one with `dask scheduler`, and give both the same "
        "DASK_CONFIG\n"
    )
