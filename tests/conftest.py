"""All tests share the folder with CIFAR-10, and functions that run scripts on real Horovod workers."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

from cifar import download

REPOSITORY = Path(__file__).resolve().parent.parent
SCRIPTS = REPOSITORY / "source_code"
# No run in the tests needs a tenth of this time. A run that hangs must end some day, so that the test can fail.
RUN_SECONDS = 900

# With `make test`, the examples are the same each time, so that a new failure comes from the changed code. With
# `make test-all`, they are new each time. Examples have no deadline, because a busy machine may delay any of them.
for name, same in (("new", False), ("same", True)):
    hypothesis.settings.register_profile(name, derandomize=same, deadline=None)
hypothesis.settings.load_profile("same")


def examples(many: int) -> int:
    """Return the number of examples to try. It is a fifth of `many` if the examples are the same each time."""
    return many // 5 if hypothesis.settings.default.derandomize else many


@pytest.fixture(scope="session")
def cifar10() -> Path:
    """Return the user's cache folder with CIFAR-10. The data is downloaded if it is not there."""
    return download.fetch()


@pytest.fixture(scope="module")
def install() -> ModuleType:
    """Return the set-up as a module. It is a file beside the packages, because it runs before they are installed."""
    spec = importlib.util.spec_from_file_location("install", SCRIPTS / "install" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def need_programs_and_root(*programs: str, target: str) -> None:
    """Fail if a program is missing or we are not root. The message names the make target that installs the programs."""
    if missing := [name for name in programs if not shutil.which(name)]:
        pytest.fail(f"missing: {', '.join(missing)}. Run as root: make {target}")
    if os.geteuid() != 0:
        pytest.fail(f"these tests need root. Run as root: make {target}")


def until(true: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until a condition is true that other processes bring about. Raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run_python(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    """Run this environment's Python with more environment variables. Its output is text."""
    command = [sys.executable, *map(str, arguments)]
    env = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, env=env, check=False)


def run_workers(count: int, *arguments: object) -> subprocess.CompletedProcess:
    """Run a script with `horovodrun -np count`. Its output is text."""
    bin_folder = Path(sys.executable).parent
    command = [bin_folder / "horovodrun", "-np", str(count), sys.executable, *map(str, arguments)]
    env = os.environ | {"PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]])}
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, env=env, check=False)


def metrics(folder: Path) -> list[dict]:
    """Return the lines of a run's `metrics.jsonl`."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def without_registry(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make both sources really unreachable: one is at a closed port, and npm is not on the path."""
    monkeypatch.setattr(download, "ARCHIVE", "http://127.0.0.1:9/cifar-10-binary.tar.gz")
    monkeypatch.setenv("PATH", "/nonexistent")
