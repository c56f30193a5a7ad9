"""The grader observes a run from outside: its processes by rank, the bytes that it sends, and the files it writes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from grader.run.process_monitor import PROCESS_TABLE_EVERY, ProcessMonitor

WRITER = "import sys; open(sys.argv[1], 'w').write('x' * 100_000)"


def write(path: Path, times: int) -> None:
    """Let `times` processes write the file one after another.

    The kernel may merge two writes at the same moment.
    """
    for _ in range(times):
        subprocess.run([sys.executable, "-c", WRITER, path], check=True)


def monitor_of(folder: Path, processes=lambda: [], loopback_bytes=lambda: None, updates=lambda: 0) -> ProcessMonitor:
    return ProcessMonitor(folder, processes, loopback_bytes, updates)


def test_four_writes_of_a_file_between_two_updates_are_counted(tmp_path: Path):
    monitor = monitor_of(tmp_path, updates=lambda: 3)
    write(tmp_path / "model.pt", times=4)
    write(tmp_path / "other", times=4)
    assert monitor.close().writes == {"model.pt": 4, "metrics.jsonl": 0}


def test_a_file_that_is_written_once_per_epoch_counts_as_one_write(tmp_path: Path):
    made = [0]  # On a GPU all these epochs may lie between two samples, so no sample is taken here.
    monitor = monitor_of(tmp_path, updates=lambda: made[0])
    for made[0] in (10, 20, 30, 40):
        write(tmp_path / "part", times=1)
        (tmp_path / "part").replace(tmp_path / "metrics.jsonl")
        while not monitor.write_counter.counts["metrics.jsonl", made[0]]:
            time.sleep(0.01)
    assert monitor.close().writes == {"model.pt": 0, "metrics.jsonl": 1}


def test_the_cpu_time_of_processes_is_kept_by_rank(tmp_path: Path):
    burn = "import time\nwhile time.process_time() < 2: pass\nprint(flush=True); time.sleep(60)"
    workers = []
    for rank in range(2):
        environment = os.environ | {"HOROVOD_RANK": str(rank)}
        command = [sys.executable, "-c", burn if rank else "print(flush=True); import time; time.sleep(60)"]
        workers.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    try:
        for worker in workers:
            worker.stdout.readline()
        monitor = monitor_of(tmp_path, processes=lambda: [psutil.Process(), *psutil.Process().children()])
        monitor.sample(updates=0)
        view = monitor.close()
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert view.running == {0, 1}
    assert view.cpu_seconds[1] > 1.9
    assert view.cpu_seconds[0] < 1


def test_cpu_time_that_is_used_without_a_new_update_is_kept_apart(tmp_path: Path):
    burn = "import sys, time\nfor line in sys.stdin:\n end = time.process_time() + 1\n"
    burn += " while time.process_time() < end: pass\n print(flush=True)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    worker = subprocess.Popen([sys.executable, "-c", burn], env=os.environ | {"HOROVOD_RANK": "0"}, **pipes)
    monitor = monitor_of(tmp_path, processes=lambda: [psutil.Process(worker.pid)])
    with worker:
        for updates in (1, 2, 2):
            print("on", file=worker.stdin, flush=True)
            worker.stdout.readline()
            for _ in range(PROCESS_TABLE_EVERY):
                monitor.sample(updates)
    view = monitor.close()
    assert view.cpu_moving[0] < 2.8
    assert view.cpu_seconds[0] >= 2.9


def test_bytes_are_kept_with_the_number_of_updates_at_that_time(tmp_path: Path):
    sent = iter([10, 20])
    monitor = monitor_of(tmp_path, loopback_bytes=lambda: next(sent))
    monitor.sample(0)
    monitor.sample(5)
    assert monitor.close().loopback == [(0, 10), (5, 20)]
