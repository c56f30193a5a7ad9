"""A program beside the notebook is launched by either launcher. Its lines come in order, and a failure is told."""

from pathlib import Path

import pytest

from lessons.cells import programs
from lessons.cells.programs import launch
from lessons.cells.running import RunError

HOROVOD = """
import horovod.torch as hvd
hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}")
print("second line")
"""
TORCH = """
import os
import sys
sys.stdout.write(f"z {os.environ['RANK']}\\na {os.environ['RANK']}\\n")
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


def test_pytorchs_launcher_starts_two_workers(folder: Path, capsys):
    (folder / "program.py").write_text(TORCH)
    lines = launch("torchrun", "program.py")
    for rank in range(2):
        assert [line for line in lines if line.endswith(str(rank))] == [f"z {rank}", f"a {rank}"], "in their order"
    assert capsys.readouterr().out == "$ torchrun --standalone --nproc-per-node 2 program.py\n"


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
