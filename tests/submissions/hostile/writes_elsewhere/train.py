"""Tries to leave files with others: the course, Python, the data, its own source, the machine's settings."""

import contextlib
import os
import sys
from itertools import filterfalse
from pathlib import Path

import horovod

import cifar

course = Path(cifar.__file__).resolve().parents[2]
data = Path(sys.argv[sys.argv.index("--data-dir") + 1])
folders = [
    course, course / "tests/submissions/naive", course / "grader", course / "benchmarks/results", course / "runs",
    Path(cifar.__file__).parent, Path(horovod.__file__).parent, Path(os.environ["PYTHONPATH"]), data, Path.cwd(),
    Path("/"), Path("/etc"), Path("/usr/local/bin"), Path("/home"), Path("/root"), Path("/submission"),
]  # fmt: skip


def own(folder: Path) -> bool:
    """Whether a folder is the run's own: in its /tmp, where a course that lies there is mounted piece by piece."""
    return folder.is_relative_to("/tmp") and not folder.is_mount()


settings = [
    "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/1/oom_score_adj", "/proc/sysrq-trigger",
    "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max",
]  # fmt: skip

if os.environ["HOROVOD_RANK"] == "0":
    for folder in filterfalse(own, folders):
        for make in (lambda path: path.write_text("x"), lambda path: path.mkdir(), lambda path: path.symlink_to("/")):
            with contextlib.suppress(OSError):
                make(folder / "course-hostile")
                print("FOUND a place to write:", folder, flush=True)
    for victim in [data / "test_batch.bin", Path(__file__), Path(cifar.__file__), *map(Path, settings)]:
        with contextlib.suppress(OSError):
            with victim.open("r+b") as file:
                file.write(b"1")
            print("FOUND a file to change:", victim, flush=True)
    for old in filterfalse(own, (data, Path.cwd(), course)):
        with contextlib.suppress(OSError):
            old.rename(old.with_name("course-hostile"))
            print("FOUND a folder to move:", old, flush=True)
    print("tried every place", flush=True)
