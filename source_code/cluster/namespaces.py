"""Makes sets of Linux namespaces, and runs commands in them. The tools are util-linux's `unshare` and `nsenter`."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil

from cluster.errors import ClusterError

INIT = Path(__file__).with_name("init.py")
PYTHON = [sys.executable, "-I", "-S"]  # The first process needs no package.
KINDS = ("--net", "--uts", "--ipc", "--mount", "--pid")
START_SECONDS = 20  # A set of namespaces is made in a tenth of a second. A machine that is very busy gets this time.


@dataclass(frozen=True)
class Namespaces:
    """A set of namespaces, and its first process, as it is seen from outside.

    `in_user_namespace` tells that an ordinary user made them. This user is root in them, and gets no right outside.
    """

    process: psutil.Process
    in_user_namespace: bool

    def enter(self, *command: str | Path, kinds: tuple[str, ...] = KINDS) -> list[str]:
        """Return the command line that runs a command in these namespaces, as root in them."""
        user = ["--user", "--preserve-credentials"] if self.in_user_namespace else []
        return ["nsenter", "--target", str(self.process.pid), *user, *kinds, "--", *map(str, command)]

    def run(self, *command: str | Path, text: str = "", kinds: tuple[str, ...] = KINDS) -> str:
        """Run a short command in these namespaces, with `text` as its input, and return its output.

        Raises ClusterError if it fails.
        """
        line = self.enter(*command, kinds=kinds)
        environment = os.environ | {"PATH": tools_path()}
        try:
            done = subprocess.run(
                line, input=text, capture_output=True, text=True, check=False, timeout=START_SECONDS, env=environment
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{command[0]} has not ended within {START_SECONDS} s. Is this machine busy?") from None
        if done.returncode != 0:
            raise ClusterError(f"{' '.join(map(str, command))} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def alive(self) -> bool:
        """Return whether the first process still runs."""
        return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE

    def kill(self) -> None:
        """Kill the first process, and with it all the others. Raises ClusterError if they do not end in time."""
        try:
            self.process.kill()
            self.process.wait(START_SECONDS)
        except psutil.NoSuchProcess:
            pass
        except psutil.TimeoutExpired:
            raise ClusterError(f"process {self.process.pid} was killed and has not ended") from None


def tools_path() -> str:
    """Return the PATH with the folders of the machine's tools. Debian leaves them out of an ordinary user's PATH."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def check_tools(packages: dict[str, str]) -> None:
    """Raises ClusterError if a tool is missing. `packages` has the Debian package of each tool."""
    absent = {package for tool, package in packages.items() if not shutil.which(tool, path=tools_path())}
    if missing := sorted(absent):
        raise ClusterError(
            f"missing: {', '.join(missing)}. On Debian or Ubuntu: sudo apt-get install {' '.join(missing)}"
        )


def create(name: str, cluster: str, within: Namespaces | None = None) -> tuple[Namespaces, subprocess.Popen]:
    """Make a set of namespaces with the host name `name`, and return it with the process that holds it.

    `cluster` is a text that names the cluster in the list of processes. With `within`, the set is made inside another
    one, and it ends with that one or when its first process is killed. Without, it also ends when the holder's standard
    input is closed. An ordinary user makes it inside a user namespace, and root makes it without one. Raises
    ClusterError if this machine does not allow it.
    """
    as_user = os.geteuid() != 0
    user = ["--user", "--map-root-user"] if as_user and within is None else []
    first = [*PYTHON, str(INIT), name, cluster, "free" if within else "tied"]
    command = ["unshare", *user, *KINDS, "--mount-proc", "--fork", "--kill-child", *first]
    process = subprocess.Popen(
        within.enter(*command) if within else command,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    # `unshare` and the first process belong to the same group, because the session is new.
    timer = threading.Timer(START_SECONDS, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    begun = process.stdout.readline() == "ready\n"
    timer.cancel()
    if not begun:
        process.kill()
        raise ClusterError(_not_allowed(process.communicate()[1].strip(), as_user))
    family = psutil.Process(process.pid).children(recursive=True)
    return Namespaces(next(child for child in family if child.cmdline() == first), as_user), process


def running() -> dict[str, dict[str, Namespaces]]:
    """Return the namespaces of this user's clusters: by cluster, and then by host name."""
    found: dict[str, dict[str, Namespaces]] = {}
    head = [*PYTHON[1:], str(INIT)]  # Another Python may have made it.
    for process in psutil.process_iter():
        try:
            command, mine = process.cmdline(), process.uids().real == os.geteuid()
        except psutil.Error:
            continue
        if mine and command[1:-3] == head:
            name, cluster, _ = command[-3:]
            found.setdefault(cluster, {})[name] = Namespaces(process, os.geteuid() != 0)
    return found


def _not_allowed(told: str, as_user: bool) -> str:
    """Return why a machine makes no namespaces, and what to do."""
    if not as_user:
        return f"root may make no namespaces here ({told}). In a container, start it with: docker run --privileged"
    return (
        f"you may make no namespaces here ({told}). Run the command as root, or allow user namespaces. "
        "On Ubuntu: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    )
