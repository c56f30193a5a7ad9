"""Runs functions of a notebook on several workers, as a program that PyTorch's launcher `torchrun` starts.

    torchrun(hello, 4)

A new Python process cannot import a function that exists only in a cell. So the functions are written to a file first.
"""

import inspect
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path

from cifar.support.horovodrun import running, torchrun_command
from lessons.cells.launches.running import SHOWN_LINES, RunError

QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR", "KINETO_LOG_LEVEL": "99"}  # only errors of PyTorch and of its profiler
WORKER_ERROR = re.compile(r"\[rank\d+\]: ")  # PyTorch writes this before each line of a worker's traceback
LAUNCHER = re.compile(r"[EW]\d{4} .*torch/distributed/elastic/")  # the launcher's own report of a failure
IMPORTS = """\
import gc, math, os, sys, time
from datetime import timedelta
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # must come before the group exists; lesson 10 says why
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from benchmarks.instruments.byte_counter import kernel_received
from cifar.data import load, normalise, shard, shuffle
from cifar.model import BootcampResNet
sys.stdout.reconfigure(line_buffering=True, write_through=False)  # one write a line, so lines do not mix
gc.freeze()  # Python does not search the objects of all these modules for garbage. It ends a little sooner then.
"""
MAIN = """
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
{name}(*sys.argv[1:])
dist.barrier()  # a worker that leaves while another one still connects to it looks like a crash
dist.destroy_process_group()  # the group's threads end here, before Python itself ends
"""


def torchrun(
    main: Callable[..., None], workers: int, *arguments: object, needs: Sequence[Callable[..., object]] = ()
) -> None:
    """Write `main`, and the functions in `needs` that it calls, to a file, and run it with `workers` workers.

    The file has the name of `main`, and lies beside the notebook. Each worker calls `main` with the arguments, as text.
    What the workers print is shown. A worker that waits for a message gives up after 60 seconds. No worker is left
    running, even after an interrupt. Raises RunError with the error of the first worker that failed.
    """
    program = Path(f"{main.__name__}.py")
    sources = [inspect.getsource(function) for function in (*needs, main)]
    program.write_text("\n\n".join([IMPORTS, *sources, MAIN.format(name=main.__name__)]))
    print("$ torchrun --nproc-per-node", workers, program, *arguments, flush=True)
    command = torchrun_command(program, workers, *arguments)
    lines, ended = [], False  # once a worker has failed, the launcher reports it at length
    with running(command, workers, QUIET | {"OMP_NUM_THREADS": "1"}) as process:
        for line in process.stdout:
            lines.append(line.rstrip())
            ended = ended or LAUNCHER.match(line) is not None
            if not ended:
                print("" if WORKER_ERROR.match(line) else line, end="", flush=True)
    if process.returncode != 0:
        raise RunError(f"{program} failed with {workers} workers:\n" + "\n".join(_reason(lines)))


def _reason(lines: list[str]) -> list[str]:
    """Return the lines of the first worker that failed, or the last lines if no worker has written an error.

    The launcher's own report is left out, unless there is nothing else.
    """
    lines = list(takewhile(lambda line: not LAUNCHER.match(line), lines)) or lines
    errors = [line for line in lines if WORKER_ERROR.match(line)]
    first = [line for line in errors if line.startswith(errors[0].partition(" ")[0])]
    return (first or lines)[-SHOWN_LINES:]
