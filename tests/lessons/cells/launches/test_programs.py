"""A program beside the notebook is launched by either launcher. Its lines come in order, and a failure is told."""

import os
from pathlib import Path

import pytest

from cifar.support.horovodrun import redirected_lines
from lessons.cells.launches import programs
from lessons.cells.launches.programs import launch
from lessons.cells.launches.running import RunError

HOROVOD = """
import horovod.torch as hvd
hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}")
print("second line")
"""
# Each piece of these lines is written by itself, as Python writes an error message.
TORCH = """
import os
import sys
for number in range(200):
    for piece in ("line ", number, " of rank ", os.environ["RANK"], "\\n"):
        os.write(1, str(piece).encode())
sys.stderr.write("a warning\\n")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_horovods_workers_are_listed_in_the_order_of_their_ranks(folder: Path, capsys):
    (folder / "program.py").write_text(HOROVOD)
    expected = [f"[{rank}] {line}" for rank in range(3) for line in (f"rank {rank} of 3", "second line")]
    assert launch("horovodrun", "program.py", 3) == expected
    assert capsys.readouterr().out == "$ horovodrun -np 3 python program.py\n"


def test_lines_of_pytorchs_workers_are_whole_and_in_the_order_of_their_ranks(folder: Path, capsys):
    (folder / "program.py").write_text(TORCH)
    printed = [[f"line {number} of rank {rank}" for number in range(200)] for rank in range(2)]
    expected = [f"[{rank}] {line}" for rank in range(2) for line in (*printed[rank], "a warning")]
    assert launch("torchrun", "program.py") == expected
    assert capsys.readouterr().out == "$ torchrun --standalone --nproc-per-node 2 program.py\n"


def test_the_error_of_the_worker_that_failed_first_comes_last(folder: Path):
    written = {"0/stderr": "the other worker is gone\n", "1/stderr": "this is the cause\n", "1/stdout": "started\n"}
    for seconds, (name, text) in zip((3, 2, 1), written.items(), strict=True):
        file = folder / "run" / "attempt_0" / f"{name}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (seconds, seconds))
    expected = ["[1]<stdout>:started", "[0]<stderr>:the other worker is gone", "[1]<stderr>:this is the cause"]
    assert redirected_lines(folder) == expected


@pytest.mark.parametrize("launcher", ["horovodrun", "torchrun"])
def test_a_program_that_fails_is_an_error_with_its_own_message(folder: Path, launcher: str):
    (folder / "program.py").write_text("raise ValueError('this is wrong')\n")
    with pytest.raises(RunError, match=r"program\.py failed with 2 workers") as failed:
        launch(launcher, "program.py")
    assert "ValueError: this is wrong" in str(failed.value)


def test_a_program_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "SECONDS", 5)
    (folder / "program.py").write_text("import time\nprint('it sleeps', flush=True)\ntime.sleep(600)\n")
    with pytest.raises(RunError, match="had not ended after 5 seconds with 2 workers"):
        launch("torchrun", "program.py")


def test_an_unknown_launcher_is_refused_in_one_line():
    with pytest.raises(ValueError, match="there is no launcher 'mpirun'; choose one of: horovodrun, torchrun"):
        launch("mpirun", "program.py")
