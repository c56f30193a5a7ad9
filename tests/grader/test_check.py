"""Right, wrong and broken submissions run on four real workers, with the fast profile, and leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from grader.check import CheckOptions, check
from grader.common import contract
from grader.grading.grade import Report
from tests.conftest import REPOSITORY, run_python, until

STARTER = REPOSITORY / "source_code" / "assignment"
REFERENCE = REPOSITORY / "solutions" / "assignment"
SUBMISSIONS = REPOSITORY / "tests" / "submissions"


def grade(submission: Path, root: Path, size: str = "fast") -> Report:
    quiet = Console(quiet=True)
    options = CheckOptions(profile=contract.load(size), key="a test's key", seed=1)
    result = check(submission, root, options, quiet)
    assert workers_left(root) == []
    return result


def workers_left(root: Path) -> list[psutil.Process]:
    """Return the processes whose command line or environment still names this run."""
    left = []
    for process in psutil.process_iter():
        try:
            known = " ".join([*process.cmdline(), process.environ().get("GRADER_OBSERVE", "")])
        except psutil.Error:
            continue
        if str(root) in known and process.pid != os.getpid():
            left.append(process)
    return left


def test_the_reference_passes_with_full_points_and_exit_status_0(tmp_path: Path):
    done = run_python("-m", "grader", "check", REFERENCE, "--profile", "fast", "--output", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED  100 of 100 points" in done.stdout
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (written["schema"], written["passed"], written["points"]) == (4, True, 100)
    assert written["isolation"].startswith("bubblewrap")
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
    assert set(written["rows"][0]) == {"id", "status", "points", "max", "asks", "seen", "message"}
    assert written["record"]["versions"]["horovod"] == "0.28.1"
    assert workers_left(tmp_path) == []


@pytest.mark.slow
def test_the_naive_conversion_misses_the_target_and_exit_status_is_1(tmp_path: Path):
    done = run_python(
        "-m", "grader", "check", SUBMISSIONS / "naive", "--profile", "fast", "--no-sandbox",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 1
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert not written["passed"]
    assert written["isolation"].startswith("none")
    assert {row["id"] for row in written["rows"] if row["status"] != "met"} == {"rate", "target"}
    assert written["points"] == 90


def test_the_unchanged_starter_trains_four_networks_and_is_told_so_early(tmp_path: Path):
    result = grade(STARTER, tmp_path / "out", "full")
    assert not result.passed
    rows = {row.id: row for row in result.rows}
    assert rows["averaged"].points == 0
    assert "4 separate networks" in rows["averaged"].seen
    assert "hvd.init()" in rows["ends"].message


def test_an_interrupted_check_leaves_nothing_running_and_no_report(tmp_path: Path):
    options = ["--profile", "fast", "--output", str(tmp_path / "out")]
    command = [sys.executable, "-m", "grader", "check", str(REFERENCE), *options]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "out" / "output.log"
    while not (log.exists() and b"4 workers on" in log.read_bytes()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "grader: interrupted; the run was ended, nothing was graded"
    until(lambda: workers_left(tmp_path) == [], seconds=10)
    assert not (tmp_path / "out" / "report.json").exists()
