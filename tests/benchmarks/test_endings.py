"""Programs that use torch.distributed end well: when Python shuts down, nothing of the process group is left."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import endings
from grader.notebooks import build
from tests.conftest import REPOSITORY, run_python

# The last thing that a worker does: it says the names of its threads. Those of a group of Gloo's contain "gloo".
# Both workers write to one pipe, so a line is written in one piece; `print` writes each of its arguments by itself.
TELL = """
import pathlib, sys
names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
sys.stdout.write(" ".join(["threads:", *names]) + "\\n")
"""


def with_ddp() -> str:
    """Lesson 09's DDP program, as the lesson's own cell writes it."""
    cells = [cell.source for cell in build.solved(build.SOLUTIONS / "09_beyond_one_machine.py").cells]
    cell = next(cell for cell in cells if "write_text(DDP)" in cell)
    names: dict = {}
    exec(cell.partition('Path("with_horovod.py")')[0], names)
    return names["DDP"]


def last_threads(program: str, folder: Path) -> list[str]:
    """What two workers of a program say of their threads at the end."""
    (folder / "program.py").write_text(program + TELL)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "localhost", "--nproc-per-node", "2")
    done = run_python(*launcher, folder / "program.py", OMP_NUM_THREADS="1")
    return [line for line in done.stdout.splitlines() if line.startswith("threads:")]


def test_the_group_of_the_ddp_program_ends_before_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    told = last_threads(with_ddp(), tmp_path)
    assert len(told) == 2
    assert not [line for line in told if "gloo" in line]


@pytest.mark.parametrize("left_out", ["import torch.distributed.nn", "del wrapped"])
def test_without_a_line_of_the_ending_the_group_outlives_it(left_out: str, tmp_path: Path, monkeypatch):
    """So the test above sees what makes such a program abort now and then."""
    monkeypatch.chdir(tmp_path)
    lines = with_ddp().splitlines(keepends=True)
    told = last_threads("".join(line for line in lines if not line.startswith(left_out)), tmp_path)
    assert len(told) == 2
    assert [line for line in told if "gloo" in line]


def test_every_program_that_makes_a_process_group_ends_it_as_lesson_09_teaches():
    folders = ("source_code", "benchmarks", "grader", "solutions", "tests/submissions")
    texts = {path: path.read_text() for name in folders for path in (REPOSITORY / name).rglob("*.py")}
    programs = {path: text for path, text in texts.items() if "dist.init_process_group(" in text}
    assert len(programs) >= 3
    for path, text in programs.items():
        assert endings.FIRST_IMPORT in text and "dist.destroy_process_group()" in text, path


def test_a_launch_that_fails_is_counted_with_its_last_lines(tmp_path: Path, capsys: pytest.CaptureFixture):
    name = "hello"
    (tmp_path / "hello.py").write_text('raise SystemExit("no greeting")\n')
    console = Console(force_terminal=False)
    for launches in (1, 1, 2):
        endings.run([name], launches, tmp_path, console, tmp_path)
    counts = json.loads(endings.path(name, tmp_path).read_text())
    assert (counts["launches"], counts["failures"]) == (2, 2)
    assert not endings.show([name], console, tmp_path)
    assert "hello: 2 of 2 launches failed" in capsys.readouterr().out


def test_lessons_that_were_not_executed_are_named_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit):
        endings.run(["hello", "with_ddp"], 1, tmp_path, Console(), tmp_path)
    assert "lacks hello.py, with_ddp.py: run `make notebooks`" in capsys.readouterr().err


def test_no_saved_count_has_a_failure_of_a_program_that_must_end_well():
    """And the program that a late import spoils failed, so the counts would have shown a failure."""
    for name, program in endings.PROGRAMS.items():
        assert (endings.read(name)["failures"] == 0) == program.ends_well, name
