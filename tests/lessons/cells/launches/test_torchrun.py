"""Functions of a notebook run on several workers that PyTorch's launcher starts."""

import sys

import pytest

from cifar.support.horovodrun import running
from lessons import RunError, torchrun
from lessons.cells.launches.torchrun import IMPORTS, MAIN

dist = None  # The program that is written imports it.
TWENTY_STARTS = f"""
{IMPORTS}
from functools import partial
begin, nothing = dist.init_process_group, lambda *_: None
for start in range(20):
    meeting, workers = f"file://{{os.getcwd()}}/start{{start}}", []
    for rank in range(8):
        if not (worker := os.fork()):
            dist.init_process_group = partial(begin, init_method=meeting, rank=rank, world_size=8)
            exec({MAIN.format(name="nothing")!r})
            os._exit(0)
        workers.append(worker)
    if any([os.waitpid(worker, 0)[1] for worker in workers]):
        sys.exit(f"a worker failed at start {{start}}")
"""


def doubled(number):
    return 2 * int(number)


def told(number):
    print(f"worker {dist.get_rank()} of {dist.get_world_size()}: {doubled(number)}", flush=True)


def counting(lines):
    for line in range(int(lines)):
        print(dist.get_rank(), line, "x" * 50)


def failing(number):
    if dist.get_rank() == 1:
        raise ValueError(f"nothing to do with {number}")
    dist.barrier()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_worker_calls_the_function_with_the_arguments(folder, capsys):
    torchrun(told, 2, 21, needs=[doubled])
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "$ torchrun --nproc-per-node 2 told.py 21" and (folder / "told.py").exists()
    assert sorted(lines) == ["worker 0 of 2: 42", "worker 1 of 2: 42"]


def test_lines_of_several_workers_do_not_mix(capsys):
    torchrun(counting, 4, 2000)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 4 * 2000
    for rank in range(4):
        own = [line for line in lines if line.startswith(f"{rank} ")]
        assert own == [f"{rank} {line} {'x' * 50}" for line in range(2000)]


def test_a_worker_without_work_ends_only_when_all_are_connected():
    """The workers have no message for each other, so the first could end while others still connect to it.

    They are forks of one process. So they start at once, and not after some seconds of imports.
    """
    with running([sys.executable, "-c", TWENTY_STARTS], 8, {}) as process:
        told, _ = process.communicate(timeout=300)
    assert process.returncode == 0, told[-500:]


def test_the_error_is_that_of_the_first_worker_that_failed(capsys):
    with pytest.raises(
        RunError, match=r"(?s)failing.py failed with 2 workers:.*ValueError: nothing to do with 7$"
    ) as told:
        torchrun(failing, 2, 7)
    assert all(line.startswith("[rank1]: ") for line in str(told.value).splitlines()[1:])
    assert "elastic" not in capsys.readouterr().out


def test_a_function_that_is_not_complete_says_what_it_lacks():
    with pytest.raises(RunError, match="NameError: name 'doubled' is not defined"):
        torchrun(told, 2, 21)
