"""The tests with a browser share Debian's Chromium, a server on a free port, and saved pictures of pages."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from grader.notebooks.handout import handout
from tests.conftest import REPOSITORY

SHOTS = REPOSITORY / "runs" / "browser"
SIZE = {"width": 1280, "height": 900}
PATIENCE = 60_000  # This is how long a test waits for something on a page, in milliseconds. Slow machines need it.

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a Chromium without windows."""
    if not (program := shutil.which("chromium")):
        pytest.fail("no chromium: make test-browser installs it (sudo apt-get install chromium)")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []  # As root, Chromium's own sandbox does not start.
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def elsewhere() -> list[str]:
    """Collect the addresses outside this machine that a page has asked for."""
    return []


@pytest.fixture
def page(browser: Browser, elsewhere: list[str]) -> Iterator[Page]:
    """Return a new page without cookies. It waits a minute for what it has to find."""
    with browser.new_context(viewport=SIZE) as context:
        context.set_default_timeout(PATIENCE)
        new = context.new_page()
        new.on("request", lambda request: elsewhere.append(request.url) if _is_elsewhere(request.url) else None)
        yield new


def _is_elsewhere(url: str) -> bool:
    return not re.match(r"(https?|wss?)://(localhost|127\.0\.0\.1)[:/]|data:|blob:|about:|file:", url)


@pytest.fixture
def shot(page: Page) -> Callable[[str], None]:
    """Return a function that keeps a picture of the page for people to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return lambda name, **options: page.screenshot(path=SHOTS / f"{name}.png", **options) and None


@pytest.fixture(scope="session")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a learner's copy of the course, installed like a learner does it."""
    folder = tmp_path_factory.mktemp("home") / "course"
    handout(folder)
    python = Path(sys.base_prefix) / "bin" / "python3.11"
    environment = {name: value for name, value in os.environ.items() if name != "COURSE_ENV"}
    subprocess.run([python, "source_code/install/install.py"], cwd=folder, env=environment, check=True)
    return folder


@contextlib.contextmanager
def lab(course: Path, *arguments: str | Path) -> Iterator[str]:
    """Start `python -m lessons.lab` of a copy of the course, and yield its address with the token once it answers."""
    python = course / ".venv" / "bin" / "python"
    command = [python, "-m", "lessons.lab", "--no-browser", "--port", str(free_port()), *map(str, arguments)]
    server = subprocess.Popen(command, cwd=course, stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http\S+", server.stdout.readline())[0]
        _wait_for(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(60)
        server.stdout.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, server: subprocess.Popen) -> None:
    """Wait until the server answers. Fails if the server ends instead."""
    port, until = int(re.search(r":(\d+)/", url)[1]), time.monotonic() + 120
    while server.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    pytest.fail(f"the server does not answer; its exit status is {server.returncode}")
