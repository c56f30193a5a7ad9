"""A class is graded on several hosts that fail in the middle. Each submission gets one grade, as on one host."""

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import cluster
from benchmarks.instruments.grading_hosts import ADDRESS, GradingHosts, batch
from cluster import Cluster, Host
from tests.conftest import REPOSITORY, until
from tests.support.submission_suite import submissions

STUDENTS = 30
KEY = ("--key", "the hosts' key")
# These are the programs that the students hand in. The first one passes.
PROGRAMS = ("right/reference", "mistakes/no_broadcast", "mistakes/init_too_late", "mistakes/sum_instead_of_mean")
DISK = "400m"  # the size of the disk that gets full
TROUBLE_SECONDS = 60  # a trouble lasts so long
BATCH_SECONDS = 3600


def hand_in(folder: Path, students: int) -> dict[str, str]:
    """Write a class, and return the program of each student."""
    known = {submission.id: submission for submission in submissions()}
    programs = {f"student{number:02}": PROGRAMS[number % len(PROGRAMS)] for number in range(students)}
    for student, program in programs.items():
        known[program].write(folder / student)
    return programs


def grades(output: Path) -> dict[str, dict]:
    """Return the grade of each student: everything but the student's name and how long it took."""
    results = json.loads((output / "results.json").read_text())["results"]
    apart = ("name", "folder", "seconds")
    for result in results:  # Several workers fail in the same way, and any of them may be the first.
        result["message"] = re.sub(r"^Worker \d said", "A worker said", result["message"])
    found = {result["name"]: {key: result[key] for key in result if key not in apart} for result in results}
    assert len(found) == len(results)
    return found


def join(grading: GradingHosts, host: str) -> None:
    """Let a host join as a machine. Its temporary folder is a disk of its own."""
    grading.temporary(host).mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "disk", grading.temporary(host)]
    grading.hosts.hosts[host].namespaces.run(*mount)
    grading.join(host)


@pytest.fixture
def four_hosts():
    with cluster.up(4) as made:
        yield made


def fill(host: Host, disk: Path) -> None:
    host.namespaces.run("sh", "-c", f"head -c 1G /dev/zero > {disk}/full 2>/dev/null; true")


def empty(host: Host, disk: Path) -> None:
    host.namespaces.run("rm", f"{disk}/full")


@pytest.mark.slow
def test_a_class_is_graded_once_and_equally_on_hosts_that_fail(four_hosts: Cluster, tmp_path: Path):
    programs = hand_in(tmp_path / "class", STUDENTS)
    grading = GradingHosts(four_hosts, tmp_path)
    for host in ("beta", "gamma", "delta"):
        join(grading, host)
    process = grading.grade(tmp_path / "class", tmp_path / "graded", *KEY)
    hosts, disk = four_hosts.hosts, grading.temporary("delta")

    def done() -> int:
        journal = tmp_path / "graded" / "journal.jsonl"
        return max(0, journal.read_text().count("\n") - 1) if journal.exists() else 0

    def again() -> None:
        four_hosts.start("beta")
        join(grading, "beta")

    troubles: list[tuple[int, Callable[[], object], Callable[[], object]]] = [
        (3, hosts["beta"].kill, again),
        (9, hosts["gamma"].cut, hosts["gamma"].mend),
        (15, lambda: fill(hosts["delta"], disk), lambda: empty(hosts["delta"], disk)),
        (21, lambda: hosts["gamma"].limit("1mbit"), lambda: hosts["gamma"].limit(None)),
    ]
    try:
        for graded, begin, finish in troubles:
            until(lambda graded=graded: done() >= graded or process.poll() is not None, BATCH_SECONDS)
            assert process.poll() is None, grading.log("alpha").read_text()
            begin()
            time.sleep(TROUBLE_SECONDS)
            finish()
        process.wait(BATCH_SECONDS)
    finally:
        grading.end()
    assert process.returncode == 0, grading.log("alpha").read_text()

    hand_in(tmp_path / "small class", len(PROGRAMS))
    alone_line = batch(tmp_path / "small class", tmp_path / "alone", *KEY)
    subprocess.run(alone_line, check=True, cwd=REPOSITORY)
    alone = {programs[student]: row for student, row in grades(tmp_path / "alone").items()}
    graded = grades(tmp_path / "graded")
    assert graded.keys() == programs.keys()
    log = grading.log("alpha").read_text()
    for number in (2, 3):  # The killed machine and the one that was cut off have joined again.
        assert log.count(f"Register worker addr: tls://10.77.0.{number}:") >= 2
    other = {
        student: (row, alone[programs[student]]) for student, row in graded.items() if row != alone[programs[student]]
    }
    assert not other
    lines = (tmp_path / "graded" / "journal.jsonl").read_text().splitlines()[1:]
    names = Counter(json.loads(line)["name"] for line in lines)
    assert names == dict.fromkeys(programs, 1)


@pytest.mark.slow
def test_who_has_not_the_key_cannot_reach_the_scheduler(four_hosts: Cluster, tmp_path: Path):
    grading = GradingHosts(four_hosts, tmp_path)
    try:
        other = tmp_path / "other"
        subprocess.run([sys.executable, "-m", "grader", "create-tls", other], check=True, stdout=subprocess.DEVNULL)
        asks = "import sys, distributed; distributed.Client(sys.argv[1], timeout=10)"
        for settings, reaches in ((grading.tls, True), (other, False), (tmp_path, False)):
            line = ["env", f"DASK_CONFIG={settings}", sys.executable, "-c", asks, ADDRESS]
            done = four_hosts.hosts["beta"].run(*line, capture_output=True, text=True)
            assert (done.returncode == 0) == reaches, done.stderr
    finally:
        grading.end()
