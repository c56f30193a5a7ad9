"""The hosts of a cluster: what they share, what they do not, and that nothing is left of them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

import cluster
from cluster import Cluster, ClusterError, Host, namespaces
from tests.cluster.conftest import on
from tests.conftest import REPOSITORY, run_python, until

SEND = """
import socket, sys, time
with socket.create_server(("", 5000)) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
    connection.sendall(bytes(int(sys.argv[1])))
"""
RECEIVE = """
import socket, time
connection, received, started = socket.create_connection(("alpha", 5000)), 0, time.perf_counter()
while part := connection.recv(1 << 20):
    received += len(part)
print(received * 8 / (time.perf_counter() - started))
"""


def bits_per_second(sender: Host, receiver: Host, size: int) -> float:
    """Send `size` bytes from the host alpha to another one, and return the speed."""
    with subprocess.Popen(sender.command(sys.executable, "-c", SEND, str(size)), stdout=subprocess.PIPE) as sending:
        assert sending.stdout.readline() == b"ready\n"
        return float(on(receiver, sys.executable, "-c", RECEIVE).stdout)


def test_each_host_has_its_name_its_address_and_its_processes(three_hosts: Cluster):
    for number, (name, host) in enumerate(three_hosts.hosts.items(), start=1):
        assert on(host, "uname", "-n").stdout == f"{name}\n"
        assert f"10.77.0.{number}/24" in on(host, "ip", "-brief", "address", "show", "eth0").stdout
        first = on(host, "cat", "/proc/1/cmdline").stdout.split("\0")
        assert first[-4:-1] == [name, three_hosts.name, "free"]


def test_hosts_log_into_each_other_by_ssh(three_hosts: Cluster):
    for here in three_hosts.hosts.values():
        for name in three_hosts.hosts:
            done = on(here, "ssh", name, "uname -n")
            assert (done.stdout, done.stderr, done.returncode) == (f"{name}\n", "", 0)


def test_no_address_outside_can_be_reached(three_hosts: Cluster):
    for host in three_hosts.hosts.values():
        assert [line.split()[0] for line in on(host, "ip", "route").stdout.splitlines()] == ["10.77.0.0/24"]
        done = on(host, sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 80))")
        assert "Network is unreachable" in done.stderr


def test_the_ssh_folder_of_the_user_is_untouched(three_hosts: Cluster):
    folder = Path.home() / ".ssh"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")} if folder.exists() else None
    on(three_hosts.hosts["alpha"], "ssh", "-o", "StrictHostKeyChecking=no", "gamma", "true")
    assert ({path: path.stat().st_mtime_ns for path in folder.rglob("*")} if folder.exists() else None) == before


def test_a_limited_link_has_its_rate_in_both_directions(three_hosts: Cluster):
    alpha, beta = three_hosts.hosts["alpha"], three_hosts.hosts["beta"]
    assert bits_per_second(alpha, beta, 20_000_000) > 60e6
    for host in (alpha, beta):
        host.limit("40mbit")
        assert host.rate == "40mbit"
        assert 10e6 < bits_per_second(alpha, beta, 5_000_000) < 60e6  # A burst comes before the limit.
        host.limit(None)


def test_a_killed_host_comes_back_with_its_limit(three_hosts: Cluster):
    alpha, gamma = three_hosts.hosts["alpha"], three_hosts.hosts["gamma"]
    gamma.limit("1gbit")
    gamma.kill()
    assert not gamma.namespaces.alive()
    assert on(alpha, "ssh", "gamma", "true").returncode == 255
    gamma = three_hosts.start("gamma")
    assert on(alpha, "ssh", "gamma", "uname -n").stdout == "gamma\n"
    assert "rate 1Gbit" in on(gamma, "tc", "qdisc", "show", "dev", "eth0").stdout
    gamma.limit(None)
    with pytest.raises(ClusterError, match="gamma is running already"):
        three_hosts.start("gamma")


def test_a_cut_cable_can_be_put_back(three_hosts: Cluster):
    alpha, beta = three_hosts.hosts["alpha"], three_hosts.hosts["beta"]
    beta.cut()
    try:
        assert on(alpha, "ssh", "beta", "true").returncode == 255
    finally:
        beta.mend()
    assert on(alpha, "ssh", "beta", "uname -n").stdout == "beta\n"


def test_another_program_finds_the_cluster_and_changes_it(three_hosts: Cluster):
    listed = run_python("-m", "cluster", "list", "--cluster", three_hosts.name)
    assert listed.stdout == "alpha  10.77.0.1  no limit\nbeta  10.77.0.2  no limit\ngamma  10.77.0.3  no limit\n"
    said = run_python("-m", "cluster", "run", "--cluster", three_hosts.name, "beta", "uname", "-n")
    assert said.stdout == "beta\n"
    assert run_python("-m", "cluster", "limit", "--cluster", three_hosts.name, "300mbit", "beta").returncode == 0
    assert three_hosts.hosts["beta"].rate == "300mbit"
    assert run_python("-m", "cluster", "limit", "--cluster", three_hosts.name, "none").returncode == 0
    assert three_hosts.hosts["beta"].rate == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("up", "--hosts", "9"), "--hosts 9: write a number from 1 to 8"),
        (("up", "--rate", "fast"), "the rate fast: write a number above 0 and kbit, mbit or gbit, as 200mbit"),
        (("up", "--rate", "0mbit"), "the rate 0mbit: write a number above 0 and kbit, mbit or gbit, as 200mbit"),
        (("list", "--cluster", "none-such"), "none-such"),
    ],
)
def test_bad_input_gets_one_line(three_hosts: Cluster, arguments: tuple[str, ...], told: str):
    done = run_python("-m", "cluster", *arguments)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("cluster: ") and told in done.stderr


def test_a_host_that_this_cluster_has_not_cannot_be_started(three_hosts: Cluster):
    done = run_python("-m", "cluster", "start", "--cluster", three_hosts.name, "theta")
    assert (done.returncode, done.stderr) == (
        2, "cluster: this cluster has no host theta. It has alpha, beta, gamma\n"
    )  # fmt: skip


def test_an_absent_host_gets_one_line(three_hosts: Cluster):
    done = run_python("-m", "cluster", "kill", "--cluster", three_hosts.name, "delta")
    assert (done.returncode, done.stderr) == (2, "cluster: no host delta is up. There is alpha, beta, gamma\n")


def test_a_machine_without_the_tools_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster.cluster, "TOOLS", cluster.cluster.TOOLS | {"no-such-tool": "its-package"})
    with pytest.raises(ClusterError, match=r"^missing: its-package\. On .*: sudo apt-get install its-package$"):
        cluster.cluster.check_machine(2, None)


SLEEP = "98765.4321"  # The seconds mark the process that runs on the hosts.


def left() -> list[str]:
    """Return the command lines of the processes of clusters of these tests, and the network cards and mounts of all."""
    lines = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            lines.append(" ".join(process.cmdline()))
    marks = (SLEEP, str(namespaces.INIT), "/run/cluster/")
    ours = [line for line in lines if any(mark in line for mark in marks)]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " cluster " in line]
    return sorted([*ours, *psutil.net_if_addrs(), *mounts])


def up_and_killed(number: int, seconds: float | None = None) -> None:
    """Start a cluster in a process of its own, and kill this process: after `seconds`, or else when a program runs."""
    command = [sys.executable, "-m", "cluster", "up", "--hosts", str(number), "sleep", SLEEP]
    with subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True) as process:
        if seconds is None:
            until(lambda: any(line == f"sleep {SLEEP}" for line in left()))
        else:
            time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)


def test_nothing_is_left_after_a_cluster_was_killed():
    before = left()
    up_and_killed(2)
    until(lambda: left() == before, 20)


@pytest.mark.slow
def test_nothing_is_left_after_twenty_ups_and_downs_with_kills_in_between():
    before = left()
    for number in range(20):
        if number % 2:
            up_and_killed(number % 8 + 1, 0.2 + number / 10)
        else:
            done = run_python("-m", "cluster", "up", "--hosts", number % 8 + 1, "ssh", "alpha", "uname", "-n")
            assert (done.stdout, done.returncode) == ("alpha\n", 0)
    until(lambda: left() == before, 20)


AS_USER = """
set -e
cp /etc/passwd $1/passwd
echo "somebody:x:12345:12345::$1:/bin/bash" >> $1/passwd
mount --bind $1/passwd /etc/passwd
cd $1
export HOME=$1 PYTHONPATH=$1 PATH=/usr/bin:/bin
exec setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps=-all --bounding-set=-all \
    /usr/bin/python3 -m cluster up --hosts 3 --rate 100mbit ssh gamma 'id -u; uname -n; tc qdisc show dev eth0'
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="all these tests run as an ordinary user then")
def test_an_ordinary_user_can_have_a_cluster():
    """The user cannot read our folders, so what a cluster needs is copied to another one, for Debian's own Python."""
    folder = Path(tempfile.mkdtemp())
    try:
        for package in (REPOSITORY / "source_code" / "cluster", REPOSITORY / "source_code" / "cifar", psutil_folder()):
            subprocess.run(["cp", "-r", package, folder], check=True)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        command = ["unshare", "--mount", "bash", "-c", AS_USER, "bash", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(folder)
    assert done.stdout.startswith("12345\ngamma\nqdisc tbf"), done.stderr


def psutil_folder() -> Path:
    """Return psutil's folder. Its compiled part fits every Python 3."""
    return Path(psutil.__file__).parent
