"""Programs that use torch.distributed leave nothing of the process group when Python shuts down."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import endings
from grader.notebooks import build
from tests.conftest import REPOSITORY, run_python

# At its end, each worker writes the names of its threads. Threads of a Gloo group have "gloo" in their names.
# Both workers write to one pipe, and one of them may be ended soon. So each line is written at once, with one call.
TELL = """
import contextlib, os, pathlib, time
def names():
    for path in pathlib.Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # this thread has just ended
            yield path.read_text().strip()
until = time.monotonic() + 5  # a thread that was joined may be listed for another moment
while any("gloo" in name for name in names()) and time.monotonic() < until:
    time.sleep(0.01)
os.write(1, (" ".join(["threads:", *names()]) + "\\n").encode())
"""


def with_ddp() -> str:
    """Return lesson 10's DDP program as the lesson's cell writes it."""
    cells = [cell.source for cell in build.solved(build.SOLUTIONS / "10_what_comes_next.py").cells]
    names: dict = {}
    for written in ("write_text(HOROVOD)", "write_text(DDP)"):
        exec(next(cell for cell in cells if written in cell).partition("written = ")[0], names)
    return names["DDP"]


def last_threads(program: str, folder: Path) -> list[str]:
    """Return the lines that two workers of a program write about their threads at the end."""
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
    """This shows that the test above would find the cause of occasional aborts."""
    monkeypatch.chdir(tmp_path)
    lines = with_ddp().splitlines(keepends=True)
    told = last_threads("".join(line for line in lines if not line.startswith(left_out)), tmp_path)
    assert told  # the launcher may end the other worker first
    assert [line for line in told if "gloo" in line]


def test_every_program_that_makes_a_process_group_ends_it_as_lesson_10_teaches():
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
    """The program that a late import spoils has failures, so the counts would have shown other failures, too."""
    for name, program in endings.PROGRAMS.items():
        assert (endings.read(name)["failures"] == 0) == program.ends_well, name
