"""What is seen of a run from outside: processes by rank, bytes, and files that several processes write."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from grader.run.process_monitor import PROCESS_TABLE_EVERY, ProcessMonitor

WRITER = "import sys; open(sys.argv[1], 'w').write('x' * 100_000)"


def write(path: Path, times: int) -> None:
    """As many processes write the file one after the other: two at the same moment may be one to the kernel."""
    for _ in range(times):
        subprocess.run([sys.executable, "-c", WRITER, path], check=True)


def outside(folder: Path, **seen) -> ProcessMonitor:
    return ProcessMonitor(folder, seen.get("processes", lambda: []), seen.get("loopback_bytes", lambda: None))


def test_a_file_that_four_processes_write_between_two_updates_is_noticed(tmp_path: Path):
    watch = outside(tmp_path)
    watch.sample(updates=3)
    write(tmp_path / "model.pt", times=4)
    write(tmp_path / "other", times=4)
    assert watch.close().writes == {"model.pt": 4, "metrics.jsonl": 0}


def test_a_file_that_is_written_once_an_epoch_is_not(tmp_path: Path):
    watch = outside(tmp_path)
    for updates in (0, 10, 20, 30):
        watch.sample(updates)
        write(tmp_path / "part", times=1)
        (tmp_path / "part").replace(tmp_path / "metrics.jsonl")
        while not watch.writes.counts["metrics.jsonl", updates]:
            time.sleep(0.01)
    assert watch.close().writes == {"model.pt": 0, "metrics.jsonl": 1}


def test_processes_are_told_apart_by_rank_with_the_cpu_time_that_they_used(tmp_path: Path):
    burn = "import time\nwhile time.process_time() < 2: pass\nprint(flush=True); time.sleep(60)"
    workers = []
    for rank in range(2):
        environment = os.environ | {"HOROVOD_RANK": str(rank)}
        command = [sys.executable, "-c", burn if rank else "print(flush=True); import time; time.sleep(60)"]
        workers.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    try:
        for worker in workers:
            worker.stdout.readline()
        watch = outside(tmp_path, processes=lambda: [psutil.Process(), *psutil.Process().children()])
        watch.sample(updates=0)
        seen = watch.close()
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert seen.running == {0, 1}
    assert seen.cpu_seconds[1] > 1.9 > 1 > seen.cpu_seconds[0]


def test_time_burnt_while_nothing_moves_is_kept_apart(tmp_path: Path):
    burn = "import sys, time\nfor line in sys.stdin:\n end = time.process_time() + 1\n"
    burn += " while time.process_time() < end: pass\n print(flush=True)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    worker = subprocess.Popen([sys.executable, "-c", burn], env=os.environ | {"HOROVOD_RANK": "0"}, **pipes)
    watch = outside(tmp_path, processes=lambda: [psutil.Process(worker.pid)])
    with worker:
        for updates in (1, 2, 2):
            print("on", file=worker.stdin, flush=True)
            worker.stdout.readline()
            for _ in range(PROCESS_TABLE_EVERY):
                watch.sample(updates)
    seen = watch.close()
    assert seen.cpu_moving[0] < 2.8 < 2.9 <= seen.cpu_seconds[0]


def test_bytes_are_kept_with_the_updates_they_belong_to(tmp_path: Path):
    sent = iter([10, 20])
    watch = outside(tmp_path, loopback_bytes=lambda: next(sent))
    watch.sample(0)
    watch.sample(5)
    assert watch.close().loopback == [(0, 10), (5, 20)]
