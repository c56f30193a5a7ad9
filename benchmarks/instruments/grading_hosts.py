"""Hosts that grade a class together: a Dask scheduler on the host alpha, and machines on the others, with TLS."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from cluster import Cluster

PORT = 8786
ADDRESS = f"tls://alpha:{PORT}"
START_SECONDS = 600  # A scheduler or a machine starts in some seconds. Beside three that train it takes two minutes.
REPOSITORY = Path(__file__).resolve().parents[2]


class GradingHosts:
    """A scheduler on the first of some hosts, and what is started beside it. All of it ends with the hosts."""

    def __init__(self, hosts: Cluster, root: Path):
        self.hosts, self.root, self.processes = hosts, root, []
        self.tls = root / "tls"
        subprocess.run([sys.executable, "-m", "grader", "create-tls", self.tls], check=True, stdout=subprocess.DEVNULL)
        dask = Path(sys.executable).with_name("dask")
        self.start("alpha", dask, "scheduler", "--protocol", "tls", "--host", "alpha", "--no-dashboard")
        asks = ("bash", "-c", f": </dev/tcp/alpha/{PORT}")
        _wait_until(lambda: hosts.hosts["beta"].run(*asks, stderr=subprocess.DEVNULL).returncode == 0)

    def start(self, host: str, *command: object, within: Iterable[str] = ()) -> subprocess.Popen:
        """Start a command on a host. `within` is the start of a command line that limits it."""
        self.temporary(host).mkdir(exist_ok=True)
        environment = [f"DASK_CONFIG={self.tls}", f"TMPDIR={self.temporary(host)}", "PYTHONUNBUFFERED=1"]
        line = [*within, *self.hosts.hosts[host].command("env", *environment, *map(str, command))]
        with self.log(host).open("a") as log:
            self.processes.append(subprocess.Popen(line, stdout=log, stderr=log, cwd=REPOSITORY))
        return self.processes[-1]

    def join(self, host: str, within: Iterable[str] = ()) -> None:
        """Let a host join as a machine, and wait until it has."""
        before = self._joined(host)
        self.start(host, sys.executable, "-m", "grader", "join", ADDRESS, within=within)
        _wait_until(lambda: self._joined(host) > before)

    def _joined(self, host: str) -> int:
        log = self.log(host)
        return log.read_text().count(f"joined {ADDRESS}") if log.exists() else 0

    def grade(self, folder: Path, output: Path, *options: str) -> subprocess.Popen:
        """Start to grade a class. The command runs on the host alpha."""
        return self.start("alpha", *batch(folder, output, "--scheduler", ADDRESS, *options))

    def temporary(self, host: str) -> Path:
        """Return a host's folder for temporary files."""
        return self.root / f"disk-{host}"

    def log(self, host: str) -> Path:
        """Return the file with the output of all that was started on a host."""
        return self.root / f"{host}.log"

    def end(self) -> None:
        """End all hosts, and with them all that was started on them."""
        self.hosts.down()
        for process in self.processes:
            process.wait()


def batch(folder: Path, output: Path, *options: str) -> list[str]:
    """Return the command line that grades a class in the fast profile."""
    command = [sys.executable, "-m", "grader", "batch", folder, "--output", output, "--profile", "fast"]
    return [*map(str, command), *options]


def _wait_until(true: Callable[[], bool]) -> None:
    """Wait until a condition is true. Raises TimeoutError after START_SECONDS."""
    deadline = time.monotonic() + START_SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"a host of the grading has not started within {START_SECONDS} s")
        time.sleep(0.02)
