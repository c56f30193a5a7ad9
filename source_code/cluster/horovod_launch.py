"""Runs a program on several hosts by `horovodrun`, and says in one line which host a failed run has lost."""

import itertools
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from cifar import download
from cifar.support.horovodrun import TRACEBACK, running
from cluster import check_hosts
from cluster.errors import ClusterError

EXITED = re.compile(r"Process (\d+) exit with status code (\d+)\.")
LOST = check_hosts.NOT_CONNECTED  # A killed program of a remote host gives this status as well.


def read_hosts(text: str) -> dict[str, int]:
    """Return the number of workers by host, from a text such as `alpha:2,beta:2`. Raises ClusterError."""
    hosts = {}
    for part in text.split(","):
        name, _, slots = part.partition(":")
        if not name or not slots.isdecimal() or int(slots) < 1 or name in hosts:
            raise ClusterError(f"-H {text}: write each host once with its number of workers, as alpha:2,beta:2")
        hosts[name] = int(slots)
    return hosts


def run(workers: int, hosts: dict[str, int], command: list[str], interface: str) -> int:
    """Check the hosts, run `command` with `workers` workers on them, and return its exit status.

    The workers' output is printed as it comes. If the run fails because a host is away, the last line names the host.
    Raises ClusterError if the hosts cannot take part.
    """
    if not command:
        raise ClusterError("name the program that the workers run, as: python source_code/cifar_base.py")
    if workers < 1:
        raise ClusterError(f"-np {workers}: write a number of 1 or more")
    if workers > sum(hosts.values()):
        raise ClusterError(f"-np {workers}: the hosts have places for {sum(hosts.values())} workers. Raise them in -H")
    if wrong := check_hosts.problems(list(hosts), same_everywhere(command)):
        raise ClusterError("\n".join(wrong))
    listed = ",".join(f"{name}:{slots}" for name, slots in hosts.items())
    launcher = ["horovodrun", "-np", str(workers), "-H", listed, "--network-interfaces", interface]
    started = time.monotonic()
    with running([*launcher, *command], workers, {}) as process:
        first = _follow(process.stdout)
    if process.returncode != 0:
        seconds = time.monotonic() - started
        for told in explanation(first, ranks(workers, hosts)):
            print(f"cluster: the run failed after {seconds:.0f} s: {told}", file=sys.stderr)
    return process.returncode


def same_everywhere(command: list[str]) -> list[Path]:
    """Return the program and the folder of data that a command uses. They must be the same on all hosts."""
    program = [Path(word) for word in command if word.endswith(".py") and Path(word).is_file()][:1]
    spelled = [part for word in command for part in (word.split("=", 1) if word.startswith("--data-dir=") else [word])]
    named = [Path(folder) for option, folder in itertools.pairwise(spelled) if option == "--data-dir"]
    return [path.absolute() for path in [*program, *(named or [download.cache_folder()])]]


def ranks(workers: int, hosts: dict[str, int]) -> list[str]:
    """Return the host of each rank. Horovod gives the first ranks to the first host."""
    return [name for name, slots in hosts.items() for _ in range(slots)][:workers]


def _follow(lines: Iterable[str]) -> tuple[int, int] | None:
    """Print a run's output without the launcher's own traceback. Return rank and exit status of the first failure."""
    first, shown = None, True
    for line in lines:
        shown = shown and not line.startswith(TRACEBACK)
        if shown:
            print(line, end="", flush=True)
        if first is None and (found := EXITED.match(line)):
            first = int(found[1]), int(found[2])
    return first


def explanation(first: tuple[int, int] | None, host_of: list[str]) -> list[str]:
    """Return why a run failed: a line for each host that is away, or else one line about the worker that failed.

    `first` has the rank and the exit status of the worker that failed first. `host_of` has the host of each rank.
    """
    if away := [told for host in dict.fromkeys(host_of) if (told := check_hosts.unreachable(host))]:
        return away
    if first is None:
        return ["horovodrun could not start it. See its last lines above"]
    rank, status = first
    host = host_of[rank]
    if status == LOST and not check_hosts.is_here(host):
        return [f"the connection to {host} was lost, and {host} answers again. Start the run again"]
    return [f"worker {rank} on {host} ended with exit status {status}. See its last lines above"]
