"""Limits the memory, the processes and the cores of a whole run.

It uses control groups of version 2 or 1. If neither can be used, it uses rlimits.
"""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from cifar.support.environment import cores

ROOT = Path("/sys/fs/cgroup")
MAX_MEMORY_BYTES = min(8 * 2**30, psutil.virtual_memory().total * 3 // 4)  # bytes; four workers use about 3 GiB
MAX_PROCESSES = 512  # processes and their threads; four workers have about 100
MAX_OPEN_FILES = 4096  # files per process; this is enough for the sockets and data files of any honest worker
MAX_CORE_BYTES = 0  # bytes per process; a crash then writes no dump of the memory to the disk
# This score is the highest. If the machine runs out of memory, the kernel ends the run and not the grader.
OOM_SCORE = 1000
SECONDS_BETWEEN_TRIES = 0.1  # seconds; a group cannot be removed until the kernel has forgotten its last process
OLD_SECONDS = 24 * 60 * 60  # seconds; no run takes so long
REMOVAL_TRIES = 1200  # tries; these take two minutes, because a removal after a fork bomb can take long
PROCESS_LIMITS = [  # a command line can start with these words; each process of the run inherits the settings
    *("choom", "-n", str(OOM_SCORE), "--"),
    *("prlimit", f"--core={MAX_CORE_BYTES}", f"--nofile={MAX_OPEN_FILES}"),
]


@contextlib.contextmanager
def limited() -> Iterator[tuple[list[str], str]]:
    """Yield the start of a command line that limits the rest of the line, and a description of the limits.

    The control groups are removed at the end. Every process in them must have ended by then.
    """
    _remove_leftovers()
    name = f"course-{os.getpid()}-{_my_list_of_processes()}-{uuid.uuid4().hex[:12]}"
    groups = _version_2(name) or _version_1(name)
    if groups:
        try:
            description = (
                f"control groups: {MAX_MEMORY_BYTES / 2**30:.0f} GiB, {MAX_PROCESSES} processes, {cores()} cores"
            )
            yield [*enter(groups), *PROCESS_LIMITS], description
        finally:
            for group in groups:
                remove(group)
    else:
        yield (
            [*PROCESS_LIMITS, f"--data={MAX_MEMORY_BYTES // 2}", f"--nproc={_my_threads() + MAX_PROCESSES}"],
            f"resource limits: {MAX_MEMORY_BYTES / 2**31:.0f} GiB a process, {MAX_PROCESSES} processes more than now",
        )


def _my_threads() -> int:
    """Return the number of this user's threads. The kernel compares it with its limit on processes."""
    processes = psutil.process_iter(["uids", "num_threads"])
    mine = [process.info for process in processes if process.info["uids"] and process.info["uids"].real == os.getuid()]
    return sum(info["num_threads"] or 1 for info in mine)


def enter(groups: list[Path]) -> list[str]:
    """Return the start of a command line that enters the groups and then executes the rest of the line."""
    entering = " && ".join(f"echo $$ > {group}/cgroup.procs" for group in groups)
    return ["sh", "-c", f'{entering} && exec "$@"', "limited"]


def _version_2(name: str) -> list[Path]:
    """Make a group with the limits in the unified hierarchy. The list is empty if the group cannot be made."""
    group = ROOT / name
    try:
        controllers = (ROOT / "cgroup.subtree_control").read_text().split()
        if not {"memory", "pids"} <= set(controllers):
            return []
        group.mkdir()
        (group / "memory.max").write_text(str(MAX_MEMORY_BYTES))
        (group / "pids.max").write_text(str(MAX_PROCESSES))
        if "cpuset" in controllers:
            (group / "cpuset.cpus").write_text(_my_cores())
    except OSError:
        remove(group)
        return []
    return [group]


def _version_1(name: str) -> list[Path]:
    """Make a group in each of the hierarchies. The list is empty if one of them cannot be made."""
    groups = []
    try:
        for controller, settings in _settings().items():
            group = ROOT / controller / name
            group.mkdir()
            groups.append(group)
            for file, value in settings.items():
                (group / file).write_text(value)
    except OSError:
        for group in groups:
            remove(group)
        return []
    return groups


def _settings() -> dict[str, dict[str, str]]:
    """Return the values for the files of each of version 1's hierarchies.

    The hierarchy `cpu` is not used. Horovod's processes wait by calling sched_yield. While processes in a group of
    `cpu` do this, Linux 6.18 gives all other programs no time, whether the group has a quota or not.
    """
    settings = {"memory": {"memory.limit_in_bytes": str(MAX_MEMORY_BYTES)}, "pids": {"pids.max": str(MAX_PROCESSES)}}
    if (ROOT / "cpuset").is_dir():
        mems = (ROOT / "cpuset" / "cpuset.mems").read_text().strip()
        settings["cpuset"] = {"cpuset.mems": mems, "cpuset.cpus": _my_cores()}
    return settings


def _my_cores() -> str:
    """Return the cores on which this process may run. The run is limited to these cores."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def _my_list_of_processes() -> int:
    """Return the number of this process's PID namespace. In another one, a process has another number, or none."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _remove_leftovers() -> None:
    """Remove the groups of graders that were killed. A living grader's group may still be empty, so it must stay.

    Containers may share the groups. Whether a grader of another container lives cannot be seen here, so its group is
    only removed when no run can be so old.
    """
    for leftover in [
        *ROOT.glob("course-*"),
        *ROOT.glob("memory/course-*"),
        *ROOT.glob("pids/course-*"),
        *ROOT.glob("cpuset/course-*"),
    ]:
        with contextlib.suppress(OSError):
            if _is_left(leftover):
                leftover.rmdir()


def _is_left(group: Path) -> bool:
    """Return whether the grader that made a group has ended, as far as that can be seen here."""
    _, owner, processes, *_ = [*group.name.split("-"), ""]
    if processes == str(_my_list_of_processes()):
        return not (owner.isdigit() and psutil.pid_exists(int(owner)))
    return time.time() - group.stat().st_mtime > OLD_SECONDS


def remove(group: Path) -> None:
    """Remove a group as soon as the kernel has forgotten its last process."""
    for _ in range(REMOVAL_TRIES):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(SECONDS_BETWEEN_TRIES)
        else:
            return
