"""formgrader shows a graded class. A real Jupyter server runs in the course's folder."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.grader.classroom.conftest import STUDENTS, Graded
from tests.grader.classroom.test_class import points
from tests.support import synthetic_class

TOKEN = "a-test"
START_SECONDS = 180


@pytest.fixture(scope="module")
def get(graded: Graded) -> Iterator[Callable[[str], str]]:
    """Start the server, and return a function that fetches one of its pages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    extensions = {"nbgrader.server_extensions.formgrader": True}
    command = [
        sys.executable, "-m", "jupyter_server", f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.jpserver_extensions={extensions}", "--ServerApp.open_browser=False", "--allow-root",
    ]  # fmt: skip
    env = os.environ | {"JUPYTER_CONFIG_DIR": str(graded.course.root / "jupyter")}
    server = subprocess.Popen(command, cwd=graded.course.root, env=env, stderr=subprocess.DEVNULL)

    def fetch(path: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    try:
        _wait(fetch)
        yield fetch
    finally:
        server.terminate()
        server.wait(30)


def _wait(fetch: Callable[[str], str]) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            fetch("api/status")
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def listed(get: Callable[[str], str], assignment: str) -> dict[str, dict]:
    return {
        submission["student"]: submission for submission in json.loads(get(f"formgrader/api/submissions/{assignment}"))
    }


@pytest.mark.parametrize("assignment", [*synthetic_class.NOTEBOOKS, synthetic_class.PROGRAM])
def test_formgrader_lists_all_submissions_with_their_points(graded: Graded, get: Callable[[str], str], assignment: str):
    submissions = listed(get, assignment)
    assert len(submissions) == STUDENTS
    for student, submission in submissions.items():
        assert submission["autograded"]
        assert not submission["needs_manual_grade"]
        assert submission["score"] == pytest.approx(points(graded.course, student, assignment), abs=0.01)


def shown(get: Callable[[str], str], student: str, assignment: str) -> str:
    """Return the page on which an instructor gives points by hand."""
    notebooks = json.loads(get(f"formgrader/api/submitted_notebooks/{assignment}/{assignment}"))
    (id,) = [notebook["id"] for notebook in notebooks if notebook["student"] == student]
    return get(f"formgrader/submissions/{id}/")


def test_formgrader_shows_the_judgement_and_fields_for_points(get: Callable[[str], str]):
    text = shown(get, synthetic_class.name(1), synthetic_class.NOTEBOOKS[1])
    assert "0 of 4 points" in text
    assert 'class="score' in text
    assert "comment" in text


def test_formgrader_shows_the_harness_report(get: Callable[[str], str]):
    text = shown(get, synthetic_class.name(1), synthetic_class.PROGRAM)
    assert "of 100 points" in text
    assert "srcdoc=" in text


def test_formgrader_runs_no_students_script(get: Callable[[str], str]):
    text = shown(get, synthetic_class.name(2), synthetic_class.NOTEBOOKS[0])
    assert "<script>alert(1)</script>" not in text
    assert "&lt;script&gt;alert(1)" in text
