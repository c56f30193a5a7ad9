"""Limits processes to a share of this machine's cores, with Linux's control groups. Only root may do it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from grader.sandbox.resource_limits import ROOT, enter, remove

PERIOD = 100_000  # microseconds; this is the kernel's own default


@contextlib.contextmanager
def limited_to(cores: float, name: str) -> Iterator[list[str]]:
    """Yield the start of a command line whose processes get at most `cores` cores together, as 0.5.

    All of them must have ended at the end. Raises OSError if this machine cannot do it.
    """
    group = _groups() / f"share-{os.getpid()}-{name}"
    group.mkdir()
    try:
        _limit(group, round(cores * PERIOD))
        yield enter([group])
    finally:
        remove(group)


def _groups() -> Path:
    """Return the folder of all groups that limit cores. Version 2 of control groups has one for all resources."""
    if not (ROOT / "cgroup.controllers").exists():
        return ROOT / "cpu"
    (ROOT / "cgroup.subtree_control").write_text("+cpu")
    return ROOT


def _limit(group: Path, microseconds: int) -> None:
    """Let a group use so many microseconds of the cores in each period."""
    version_1 = group / "cpu.cfs_quota_us"
    if version_1.exists():
        (group / "cpu.cfs_period_us").write_text(str(PERIOD))
        version_1.write_text(str(microseconds))
    else:
        (group / "cpu.max").write_text(f"{microseconds} {PERIOD}")
