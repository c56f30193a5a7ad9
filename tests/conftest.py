"""What tests share: the folder with CIFAR-10, and real runs of scripts on real Horovod workers."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from cifar import download

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPTS = REPOSITORY / "source_code"
RUN_SECONDS = 900  # no run in the tests needs a tenth of it; a hang must not outlast the tests' patience

# `make test` looks at the same examples each time, so that it tells of the change alone; `make test-all` at new ones.
# A moment without a processor is no failure of an example: none has a deadline.
for name, same in (("new", False), ("same", True)):
    hypothesis.settings.register_profile(name, derandomize=same, deadline=None)
hypothesis.settings.load_profile("same")


def examples(many: int) -> int:
    """A fifth as many where they are the same ones each time."""
    return many // 5 if hypothesis.settings.default.derandomize else many


@pytest.fixture(scope="session")
def cifar10() -> Path:
    """The user's cache folder with CIFAR-10, fetched if need be."""
    return download.fetch()


def until(true: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for something that other processes bring about; AssertionError if they do not."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_python(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Run this environment's Python with more environment variables; its output as text."""
    command = [sys.executable, *map(str, arguments)]
    env = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, env=env, check=False)


def run_workers(count: int, *arguments: object) -> subprocess.CompletedProcess:
    """Run a script with `horovodrun -np count`; its output as text."""
    bin_folder = Path(sys.executable).parent
    command = [bin_folder / "horovodrun", "-np", str(count), sys.executable, *map(str, arguments)]
    env = os.environ | {"PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]])}
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, env=env, check=False)


def metrics(folder: Path) -> list[dict]:
    """The lines of a run's `metrics.jsonl`."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def without_registry(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make both sources unreachable for real: a closed port, and no npm on the path."""
    monkeypatch.setattr(download, "ARCHIVE", "http://127.0.0.1:9/cifar-10-binary.tar.gz")
    monkeypatch.setenv("PATH", "/nonexistent")
