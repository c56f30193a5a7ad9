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
from cluster import Cluster, Host
from tests.conftest import REPOSITORY, until
from tests.support.submission_suite import submissions

STUDENTS = 30
KEY = "the hosts' key"
# These are the programs that the students hand in. The first one passes.
PROGRAMS = ("right/reference", "mistakes/no_broadcast", "mistakes/init_too_late", "mistakes/sum_instead_of_mean")
DISK = "400m"  # the size of the disk that gets full
TROUBLE_SECONDS = 60  # a trouble lasts so long
BATCH_SECONDS = 3600
PORT = 8786


def hand_in(folder: Path, students: int) -> dict[str, str]:
    """Write a class, and return the program of each student."""
    known = {submission.id: submission for submission in submissions()}
    programs = {f"student{number:02}": PROGRAMS[number % len(PROGRAMS)] for number in range(students)}
    for student, program in programs.items():
        known[program].write(folder / student)
    return programs


def batch(folder: Path, output: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "grader", "batch", folder, "--output", output, "--key", KEY, "--profile", "fast"]
    return [*map(str, command), *options]


def grades(output: Path) -> dict[str, dict]:
    """Return the grade of each student: everything but the student's name and how long it took."""
    results = json.loads((output / "results.json").read_text())["results"]
    apart = ("name", "folder", "seconds")
    for result in results:  # Several workers fail in the same way, and any of them may be the first.
        result["message"] = re.sub(r"^Worker \d said", "A worker said", result["message"])
    found = {result["name"]: {key: result[key] for key in result if key not in apart} for result in results}
    assert len(found) == len(results)
    return found


class Grading:
    """A scheduler on the host alpha, and a machine on each other host, with TLS between them."""

    def __init__(self, hosts: Cluster, root: Path):
        self.hosts, self.root, self.processes = hosts, root, []
        self.tls = root / "tls"
        subprocess.run([sys.executable, "-m", "grader", "create-tls", self.tls], check=True, stdout=subprocess.DEVNULL)
        dask = Path(sys.executable).with_name("dask")
        self.start("alpha", dask, "scheduler", "--protocol", "tls", "--host", "alpha", "--no-dashboard")
        asks = ("bash", "-c", f": </dev/tcp/alpha/{PORT}")
        until(lambda: hosts.hosts["beta"].run(*asks, stderr=subprocess.DEVNULL).returncode == 0)

    def disk(self, host: str) -> Path:
        """Return a host's temporary folder."""
        folder = self.root / f"disk-{host}"
        folder.mkdir(exist_ok=True)
        return folder

    def start(self, host: str, *command: object) -> subprocess.Popen:
        environment = [f"DASK_CONFIG={self.tls}", f"TMPDIR={self.disk(host)}"]
        line = self.hosts.hosts[host].command("env", *environment, *map(str, command))
        with (self.root / f"{host}.log").open("a") as log:
            self.processes.append(subprocess.Popen(line, stdout=log, stderr=log, cwd=REPOSITORY))
        return self.processes[-1]

    def join(self, host: str) -> None:
        """Let a host join as a machine. Its temporary folder is a disk of its own."""
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "disk", self.disk(host)]
        self.hosts.hosts[host].namespaces.run(*mount)
        self.start(host, sys.executable, "-m", "grader", "join", f"tls://alpha:{PORT}")

    def end(self) -> None:
        """End all hosts, and with them all processes that were started on them."""
        self.hosts.down()
        for process in self.processes:
            process.wait()


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
    grading = Grading(four_hosts, tmp_path)
    for host in ("beta", "gamma", "delta"):
        grading.join(host)
    line = batch(tmp_path / "class", tmp_path / "graded", "--scheduler", f"tls://alpha:{PORT}")
    process = grading.start("alpha", *line)
    hosts, disk = four_hosts.hosts, grading.disk("delta")

    def done() -> int:
        journal = tmp_path / "graded" / "journal.jsonl"
        return max(0, journal.read_text().count("\n") - 1) if journal.exists() else 0

    def again() -> None:
        four_hosts.start("beta")
        grading.join("beta")

    troubles: list[tuple[int, Callable[[], object], Callable[[], object]]] = [
        (3, hosts["beta"].kill, again),
        (9, hosts["gamma"].cut, hosts["gamma"].mend),
        (15, lambda: fill(hosts["delta"], disk), lambda: empty(hosts["delta"], disk)),
        (21, lambda: hosts["gamma"].limit("1mbit"), lambda: hosts["gamma"].limit(None)),
    ]
    try:
        for graded, begin, finish in troubles:
            until(lambda graded=graded: done() >= graded or process.poll() is not None, BATCH_SECONDS)
            assert process.poll() is None, (tmp_path / "alpha.log").read_text()
            begin()
            time.sleep(TROUBLE_SECONDS)
            finish()
        process.wait(BATCH_SECONDS)
    finally:
        grading.end()
    assert process.returncode == 0, (tmp_path / "alpha.log").read_text()

    hand_in(tmp_path / "small class", len(PROGRAMS))
    subprocess.run(batch(tmp_path / "small class", tmp_path / "alone"), check=True, cwd=REPOSITORY)
    alone = {programs[student]: row for student, row in grades(tmp_path / "alone").items()}
    graded = grades(tmp_path / "graded")
    assert graded.keys() == programs.keys()
    log = (tmp_path / "alpha.log").read_text()
    for number in (2, 3):  # The killed machine and the one that was cut off have joined again.
        assert log.count(f"Register worker addr: tls://10.77.0.{number}:") >= 2
    assert all(graded[student] == alone[program] for student, program in programs.items())
    lines = (tmp_path / "graded" / "journal.jsonl").read_text().splitlines()[1:]
    names = Counter(json.loads(line)["name"] for line in lines)
    assert names == dict.fromkeys(programs, 1)


@pytest.mark.slow
def test_who_has_not_the_key_cannot_reach_the_scheduler(four_hosts: Cluster, tmp_path: Path):
    grading = Grading(four_hosts, tmp_path)
    try:
        other = tmp_path / "other"
        subprocess.run([sys.executable, "-m", "grader", "create-tls", other], check=True, stdout=subprocess.DEVNULL)
        asks = "import sys, distributed; distributed.Client(sys.argv[1], timeout=10)"
        for settings, reaches in ((grading.tls, True), (other, False), (tmp_path, False)):
            line = ["env", f"DASK_CONFIG={settings}", sys.executable, "-c", asks, f"tls://alpha:{PORT}"]
            done = four_hosts.hosts["beta"].run(*line, capture_output=True, text=True)
            assert (done.returncode == 0) == reaches, done.stderr
    finally:
        grading.end()
