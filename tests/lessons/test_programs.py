"""A program beside the notebook is launched by either launcher. Its lines come in order, and a failure is told."""

from pathlib import Path

import pytest

from lessons.cells.programs import launch
from lessons.cells.running import RunError

HOROVOD = """
import horovod.torch as hvd
hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}")
"""
TORCH = """
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_horovods_workers_are_listed_in_the_order_of_their_ranks(folder: Path, capsys):
    (folder / "program.py").write_text(HOROVOD)
    assert launch("horovodrun", "program.py", 3) == [f"[{rank}] rank {rank} of 3" for rank in range(3)]
    assert capsys.readouterr().out == "$ horovodrun -np 3 python program.py\n"


def test_pytorchs_launcher_starts_two_workers(folder: Path, capsys):
    (folder / "program.py").write_text(TORCH)
    assert sorted(launch("torchrun", "program.py")) == ["rank 0 of 2", "rank 1 of 2"]
    assert capsys.readouterr().out == "$ torchrun --standalone --nproc-per-node 2 program.py\n"


@pytest.mark.parametrize("launcher", ["horovodrun", "torchrun"])
def test_a_program_that_fails_is_an_error_with_its_own_message(folder: Path, launcher: str):
    (folder / "program.py").write_text("raise ValueError('this is wrong')\n")
    with pytest.raises(RunError, match=r"program\.py failed with 2 workers") as failed:
        launch(launcher, "program.py")
    assert "ValueError: this is wrong" in str(failed.value)
