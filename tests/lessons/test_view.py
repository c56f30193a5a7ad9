"""The live view shows what each worker does, the accuracy as it grows, and a worker that dies."""

import io
import math
import struct
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from rich.console import Console

from cifar.support import lane
from cifar.support.horovodrun import running
from lessons.cells.launches.running import SOURCE
from lessons.view import picture, watch
from lessons.view.run import SAMPLES, SILENT_SECONDS, Run
from tests.conftest import REPOSITORY
from tests.support import view_cost


def training(folder: Path, workers: int = 2) -> Run:
    """Return a run whose workers have made some updates."""
    run = Run(folder, workers, epochs=4)
    for rank in range(workers):
        own = lane.Lane(folder / str(rank))
        own.updated(2.5)
        own.updated(2.25)
    run.look()
    return run


def test_a_worker_tells_what_it_does(tmp_path: Path):
    own = lane.Lane(tmp_path / "0")
    assert lane.read(tmp_path / "0").doing == "starting" and math.isnan(lane.read(tmp_path / "0").loss)
    own.updated(1.5)
    own.tell("waiting")
    found = lane.read(tmp_path / "0")
    assert (found.doing, found.updates, found.loss) == ("waiting", 1, 1.5)
    assert found.process == psutil.Process().pid and abs(found.changed - time.time()) < 10


def test_nothing_is_written_if_nobody_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(lane.FOLDER, raising=False)
    lane._own.cache_clear()
    lane.tell("waiting")
    lane.updated(torch.tensor(1.0))
    assert lane._own() is None and not list(tmp_path.iterdir())


def test_the_picture_and_its_words_say_what_the_workers_do(tmp_path: Path):
    run = training(tmp_path)
    run.heard("[0]<stdout>:epoch 1/4  rate 0.00100  training loss 2.000  test accuracy 25.50%  900 images/s  1.0 s\n")
    said = picture.describe(run)
    assert said.startswith("1 of 4 epochs, about ") and "worker 1: computing, update 2" in said
    assert said.endswith("Test accuracy 25.5 %.")
    drawn = picture.draw(run)
    assert "update 2" in drawn and "loss 2.25" in drawn and "25.5" in drawn


def test_a_worker_that_dies_is_shown_with_its_last_line(tmp_path: Path):
    run = training(tmp_path)
    run.heard("[1]<stderr>:RuntimeError: out of memory <here>\n")
    end(tmp_path, 1)
    run.look()
    assert run.lost == [run.workers[1]]
    assert picture.summary(run).endswith("; worker 1 ended")
    assert "RuntimeError: out of memory &lt;here&gt;" in picture.draw(run)


def test_after_a_failure_each_lane_keeps_its_last_line_and_the_first_to_end_is_named(tmp_path: Path):
    run = training(tmp_path)
    end(tmp_path, 1)
    run.look()
    end(tmp_path, 0)
    run.look()
    run.over = True
    run.heard("[0]<stderr>:Connection reset by peer\n")
    run.heard("[1]<stderr>:Killed\n")
    assert picture.summary(run).endswith("worker 1 ended first, and so the run failed")
    assert "Killed" in picture.draw(run) and "Connection reset by peer" in picture.draw(run)


def test_workers_that_end_one_after_the_other_once_all_is_done_are_not_lost(tmp_path: Path):
    run = training(tmp_path)
    end(tmp_path, 1)
    for epoch in range(1, 5):
        run.heard(
            f"[0]<stdout>:epoch {epoch}/4  rate 0.001  training loss 2.0  test accuracy 25.5%  9 images/s  1.0 s\n"
        )
    run.look()
    assert not run.lost


def end(folder: Path, rank: int) -> None:
    """Let a worker's file name a process that has ended."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    path, number = folder / str(rank), struct.Struct("<I")
    path.write_bytes(number.pack(gone.pid) + path.read_bytes()[number.size :])


def test_a_worker_that_hangs_is_shown_with_the_seconds(tmp_path: Path):
    run = training(tmp_path)
    run.workers[0].doing, run.workers[0].silent = "waiting", SILENT_SECONDS + 7
    assert picture.words(run.workers[0]) == "waiting for 12 s" and picture.words(run.workers[1]) == "computing"


def test_a_run_that_has_not_begun_can_be_drawn(tmp_path: Path):
    run = Run(tmp_path, 4, epochs=2)
    run.look()
    assert picture.describe(run).startswith("0 of 2 epochs. worker 0: starting, update 0;")
    assert picture.draw(run)


def test_the_lanes_show_the_whole_run_however_long_it_is(tmp_path: Path):
    run = Run(tmp_path, 2, epochs=2)
    run.look()
    assert not run.workers[0].past, "before anybody trains, there is nothing to show"
    own = lane.Lane(tmp_path / "0")
    own.updated(2.5)
    for _ in range(10 * SAMPLES):
        run.look()
    own.tell("testing")
    for _ in range(10 * SAMPLES):
        run.look()
    past = run.workers[0].past
    assert SAMPLES / 2 <= len(past) <= SAMPLES
    assert past[0] == "computing" and past[-1] == "testing" and abs(past.count("testing") - len(past) / 2) <= 1
    assert set(run.workers[1].past) == {"starting"} and len(run.workers[1].past) == len(past)
    assert f"{run.last_moment - run.first_moment:.1f} s" in picture.draw(run)


def test_in_a_terminal_the_same_is_a_table(tmp_path: Path):
    console = Console(width=100, record=True, file=io.StringIO())
    with watch.in_terminal(2, 4, console) as run:
        for rank in range(2):
            lane.Lane(run.folder / str(rank)).updated(1.25)
        run.look()
        console.print(watch.table(run))
    said = console.export_text()
    assert "computing" in said and "1.25" in said and "0 of 4 epochs" in said
    assert not run.folder.exists() and run.over


def test_real_workers_move_and_one_that_is_killed_is_seen(cifar10: Path, tmp_path: Path):
    options = ["--epochs", "99", "--images", "1024", "--batch-size", "32", "--output-dir", str(tmp_path / "out")]
    command = ["horovodrun", "-np", "2", sys.executable, str(SOURCE / "cifar_base.py"), *options]
    run = Run(tmp_path, 2, epochs=99)
    with running(command, 2, {lane.FOLDER: str(tmp_path)}) as process:
        until = time.monotonic() + 120
        seen = set()
        while not ({"computing", "waiting"} <= seen and min(worker.updates for worker in run.workers) >= 5):
            assert time.monotonic() < until, f"in 120 s, the workers were seen {seen}"
            run.look()
            seen |= {worker.doing for worker in run.workers}
        psutil.Process(lane.read(tmp_path / "1").process).kill()
        while run.workers[1].doing != "ended" and time.monotonic() < until:
            run.look()
        process.terminate()
    assert run.workers[1].doing == "ended" and run.workers[1].updates >= 5
    assert run.workers[0].loss < 10


def test_the_command_for_a_terminal_shows_the_lines_and_ends_as_the_run_does(cifar10: Path, tmp_path: Path):
    options = ["--epochs", "1", "--images", "256", "--test-images", "100", "--output-dir", str(tmp_path)]
    run = ["python", str(SOURCE / "cifar_single.py"), *options]
    command = [sys.executable, "-m", "lessons.view"]
    done = subprocess.run([*command, *run], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0 and "epoch 1/1" in done.stdout and "1 of 1 epochs" in done.stdout
    failed = subprocess.run([*command, *run, "--lr", "-1"], cwd=REPOSITORY, capture_output=True, text=True)
    assert failed.returncode == 2 and "must be a number above 0" in failed.stdout
    empty = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert empty.returncode == 2 and len(empty.stderr.splitlines()) == 1


def test_the_live_view_costs_at_most_one_per_cent_in_the_saved_pairs(capsys: pytest.CaptureFixture[str]):
    assert view_cost.show(), capsys.readouterr().out
