"""Functions of a notebook run on several workers that PyTorch's launcher starts."""

import pytest

from lessons import RunError, torchrun

dist = None  # The program that is written imports it.


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
