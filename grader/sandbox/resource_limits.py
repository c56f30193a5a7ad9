"""Limits on a whole run's memory, processes and cores: by control groups (version 2 or 1), or else by rlimits."""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil

from cifar.support.environment import cores

ROOT = Path("/sys/fs/cgroup")
MEMORY_BYTES = min(8 * 2**30, psutil.virtual_memory().total * 3 // 4)  # four workers use about 3 GiB
PROCESSES = 512  # threads count; four workers have about 100
# Where memory runs out all the same, the kernel is to end the run and not the grader; no dumps; open files a process.
FILES = ["choom", "-n", "1000", "--", "prlimit", "--core=0", "--nofile=4096"]


@contextlib.contextmanager
def limited() -> Iterator[tuple[list[str], str]]:
    """Yields the start of a command line under which the rest of it is limited, and in words how.

    The groups are removed at the end; every process in them must have ended by then.
    """
    _remove_leftovers()
    name = f"course-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    groups = _version_2(name) or _version_1(name)
    if groups:
        try:
            told = f"control groups: {MEMORY_BYTES / 2**30:.0f} GiB, {PROCESSES} processes, {cores()} cores"
            yield [*_join(groups), *FILES], told
        finally:
            for group in groups:
                _remove(group)
    else:
        yield (
            [*FILES, f"--data={MEMORY_BYTES // 2}", f"--nproc={_my_threads() + PROCESSES}"],
            f"resource limits: {MEMORY_BYTES / 2**31:.0f} GiB a process, {PROCESSES} processes more than now",
        )


def _my_threads() -> int:
    """Threads of this user, which is what the kernel compares with its limit on processes."""
    found = psutil.process_iter(["uids", "num_threads"])
    mine = [process.info for process in found if process.info["uids"] and process.info["uids"].real == os.getuid()]
    return sum(info["num_threads"] or 1 for info in mine)


def _join(groups: list[Path]) -> list[str]:
    """A command line that enters the groups and then becomes the rest of the line."""
    enter = " && ".join(f"echo $$ > {group}/cgroup.procs" for group in groups)
    return ["sh", "-c", f'{enter} && exec "$@"', "limited"]


def _version_2(name: str) -> list[Path]:
    """A new group with the limits in the unified hierarchy; empty if it cannot be had."""
    group = ROOT / name
    try:
        controllers = (ROOT / "cgroup.subtree_control").read_text().split()
        if not {"memory", "pids"} <= set(controllers):
            return []
        group.mkdir()
        (group / "memory.max").write_text(str(MEMORY_BYTES))
        (group / "pids.max").write_text(str(PROCESSES))
        if "cpuset" in controllers:
            (group / "cpuset.cpus").write_text(_my_cores())
    except OSError:
        _remove(group)
        return []
    return [group]


def _version_1(name: str) -> list[Path]:
    """A new group in each of the hierarchies; empty if they cannot be had."""
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
            _remove(group)
        return []
    return groups


def _settings() -> dict[str, dict[str, str]]:
    """What is written into the files of each of version 1's hierarchies.

    There is none for `cpu`: Linux 6.18 starves all other programs while processes in such a group, with a quota or
    without, wait by sched_yield, as Horovod's do.
    """
    settings = {"memory": {"memory.limit_in_bytes": str(MEMORY_BYTES)}, "pids": {"pids.max": str(PROCESSES)}}
    if (ROOT / "cpuset").is_dir():
        mems = (ROOT / "cpuset" / "cpuset.mems").read_text().strip()
        settings["cpuset"] = {"cpuset.mems": mems, "cpuset.cpus": _my_cores()}
    return settings


def _my_cores() -> str:
    """The cores on which this process may run; the run can be given no others, and cannot take them."""
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def _remove_leftovers() -> None:
    """Remove the groups of graders that were killed; another grader's may still be empty, so its owner must be gone."""
    for leftover in [
        *ROOT.glob("course-*"),
        *ROOT.glob("memory/course-*"),
        *ROOT.glob("pids/course-*"),
        *ROOT.glob("cpuset/course-*"),
    ]:
        owner = leftover.name.split("-")[1]
        if not (owner.isdigit() and psutil.pid_exists(int(owner))):
            with contextlib.suppress(OSError):
                leftover.rmdir()


def _remove(group: Path) -> None:
    """Remove a group as soon as the kernel has forgotten its last process."""
    for _ in range(1200):  # after a fork bomb it takes seconds, on a busy machine more
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
