"""Workers choose devices and threads, wait for gradients, and stop with one line."""

import textwrap

import pytest
import torch
from torch import nn

from cifar import workers
from cifar.training import running_statistics
from tests.conftest import run_python


@pytest.mark.parametrize(("local_size", "threads"), [(1, 2), (2, 1), (4, 1)])
def test_cores_are_divided_among_the_workers(local_size: int, threads: int, monkeypatch, capsys):
    monkeypatch.setattr(workers, "cores", lambda: 2)
    before = torch.get_num_threads()
    try:
        assert workers.use_device("cpu", local_rank=0, local_size=local_size) == torch.device("cpu")
        assert torch.get_num_threads() == threads
        assert f"on the CPU, {threads} thread" in capsys.readouterr().out
        workers.use_device("cpu", local_rank=local_size - 1 or 1, local_size=local_size)
        assert capsys.readouterr().out == ""
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the GPU that the message says is missing")
def test_asking_for_a_gpu_that_is_not_there_is_one_line(capsys):
    with pytest.raises(SystemExit):
        workers.use_device("cuda")
    assert "PyTorch sees no GPU here. Use --device cpu" in capsys.readouterr().err


def test_several_workers_use_a_gpu_only_through_a_horovod_that_can(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(workers, "_horovod_reads_gpu", lambda: False)
    before = torch.get_num_threads()
    try:
        assert workers.use_device("auto", local_rank=0, local_size=4) == torch.device("cpu")
    finally:
        torch.set_num_threads(before)
    with pytest.raises(SystemExit):
        workers.use_device("cuda", local_rank=0, local_size=4)
    assert "Horovod was built without CUDA" in capsys.readouterr().err


def test_a_plain_optimizer_waits_for_nobody():
    workers.wait_for_gradients(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1))


def test_running_statistics_leave_out_the_counters():
    net = nn.BatchNorm2d(3)
    assert [tuple(buffer.shape) for buffer in running_statistics(net)] == [(3,), (3,)]


def test_training_does_not_import_the_compiler_and_compiling_still_does():
    run = """
        import sys
        from types import ModuleType
        import torch
        import cifar.workers
        for kind in torch.optim.SGD, torch.optim.Adam:
            net = torch.nn.Linear(2, 1)
            optimizer = kind(net.parameters(), lr=0.1)
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.load_state_dict(optimizer.state_dict())
        import inspect
        inspect.getmodule(inspect.currentframe())
        import torch.utils.flop_counter
        torch.testing.assert_close(net.weight, net.weight)
        assert "torch._dynamo.eval_frame" not in sys.modules
        double = torch.compile(lambda x: 2 * x, backend="eager")
        assert double(torch.ones(3)).tolist() == [2, 2, 2]
        assert sys.modules["torch._dynamo"] is torch._dynamo and "torch._dynamo.eval_frame" in sys.modules
    """
    done = run_python("-c", textwrap.dedent(run))
    assert done.returncode == 0, done.stderr


def test_the_launcher_reads_what_horovod_was_built_with():
    """The answer needs no import of PyTorch, and it is the same as Horovod's own answer."""
    ask = "print(gloo_built(), mpi_built())"
    launcher = run_python(
        "-c", f"import sys; from horovod.common.util import *; {ask}; assert 'torch' not in sys.modules"
    )
    itself = run_python("-c", f"from horovod.torch import *; {ask}")
    assert launcher.stdout == itself.stdout == "True False\n", launcher.stderr + itself.stderr
