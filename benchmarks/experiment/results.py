"""Each run has one small JSON file. It is written whole or not at all, so an interrupted series can be continued."""

import datetime
import json
import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil
import torch

from cifar.support.environment import cores
from grader.common.atomic_write import write_whole

RESULTS = Path(__file__).parents[1] / "results"


def machine() -> dict[str, object]:
    """The description of this machine: processor, cores, memory, GPU, versions, date, commit of this repository."""
    cpu = torch.cpu.get_capabilities()
    return {
        "cpu": cpu.get("cpu_name", platform.processor()),
        "bf16": bool(cpu.get("avx512_bf16") or cpu.get("amx_bf16")),
        "cores": cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "horovod": version("horovod"),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
    }


def kind(machine: dict[str, object]) -> tuple[object, ...]:
    """The parts of a machine's description that must be equal for its speeds to be comparable with another's."""
    return tuple(machine.get(name) for name in ("cpu", "bf16", "cores", "gpu", "torch", "horovod"))


def described(machine: dict[str, object]) -> str:
    """A machine's description in one line."""
    where = (
        f"{machine['cores']} core{'s' * (machine['cores'] != 1)} of {machine['cpu']}{', bfloat16' * machine['bf16']}"
    )
    where += f", {machine['gpu']}" if machine["gpu"] else ""
    versions = f"Python {machine['python']}, PyTorch {machine['torch']}, Horovod {machine['horovod']}"
    return f"{where}, {versions}, {machine['date'][:10]}, commit {machine['commit']}"


def _commit() -> str:
    """The commit of this repository, with "-dirty" if a file other than a result differs from it.

    New and changed results do not count, because a series that is measured again changes them itself. If the variable
    `COURSE_COMMIT` is set, it is the answer. It names the commit of files that were carried to another machine and
    compared there (source_code/install/trial.py). The repository there may be at an earlier commit. Without git, or in
    a learner's copy that is no repository, the answer is "unknown".
    """
    if carried := os.environ.get("COURSE_COMMIT"):
        return carried
    if not shutil.which("git") or not (commit := _git("rev-parse", "--short=12", "HEAD")):
        return "unknown"
    changed = _git("status", "--porcelain", "--", ":/", f":(exclude){RESULTS}")
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    """The output of a git command in this repository; empty if the command writes none."""
    command = ["git", "-C", str(RESULTS.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def write(path: Path, content: dict) -> None:
    """Write `content` and the machine's description to `path` as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({**content, "machine": machine()}, indent=1) + "\n")


def read(folder: Path, variant: str) -> list[dict]:
    """The results in the files whose names begin with `variant-`, in the order of their seeds."""
    found = [json.loads(path.read_text()) for path in folder.glob(f"{variant}-*.json")]
    return sorted(found, key=lambda result: result["seed"])
