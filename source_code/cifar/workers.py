"""What each worker process needs to know of the others: its device and threads, and how to wait.

Workers that share cores must leave them to each other. So a worker sleeps while it waits (`wait_for_gradients`; Horovod
spins), takes its share of the threads (`use_device`), has Horovod agree on work less often, and hardly ever while there
is none (`cifar.support.environment`), and, with `groups=1` in its script, sends all gradients in one buffer. Lesson 04
shows what each is worth; the sums are the same.
"""

import ctypes
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

import torch

from cifar.support.environment import cores, stop
from cifar.support.lazy_dynamo import put_off_compiler

Arithmetic = Callable[[torch.device], AbstractContextManager]  # the number format to compute in on a device
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # malloc.h
# A waiting worker asks every millisecond: short beside an update (hundreds on a CPU), long enough to free the core.
POLL_SECONDS = 0.001

put_off_compiler()  # on import, since every optimizer would import the compiler before its first step


def use_device(wanted: str, local_rank: int = 0, local_size: int = 1) -> torch.device:
    """The device for this worker, and its share of the threads; the machine's first worker says which, once.

    `wanted` is `auto`, `cpu` or `cuda`. A GPU each where there are enough, else the GPUs are shared, else the CPU
    with `max(1, cores // local_size)` threads a worker.
    """
    gpus = torch.cuda.device_count() if wanted != "cpu" else 0
    if wanted == "cuda" and gpus == 0:
        stop("--device cuda: PyTorch sees no GPU here. Use --device cpu, or install a CUDA build of PyTorch.")
    several = local_size > 1 or int(os.environ.get("HOROVOD_SIZE", 1)) > 1  # of one machine, or of one each
    if gpus and several and not _horovod_reads_gpu():
        if wanted == "cuda":
            stop("--device cuda: Horovod was built without CUDA. Put nvcc on the path and run make setup, or use auto.")
        gpus = 0
    threads = max(1, cores() // local_size)
    torch.set_num_threads(threads)
    _keep_memory()
    device = torch.device("cuda", local_rank % gpus) if gpus else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if local_rank == 0:
        print(_placement(local_size, gpus, threads), flush=True)
    return device


def _keep_memory() -> None:
    """Have glibc keep freed memory: by default it gives every large activation back and faults its pages in again."""
    with suppress(AttributeError, OSError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def _horovod_reads_gpu() -> bool:
    """Whether Horovod was built with CUDA: without, it may read a gradient on the GPU before it has been computed."""
    import horovod.torch as hvd

    return bool(hvd.cuda_built())


def _placement(workers: int, gpus: int, threads: int) -> str:
    who = "1 worker" if workers == 1 else f"{workers} workers"
    if gpus == 0:
        return f"{who} on the CPU, {threads} thread{'s' * (threads > 1)} each"
    if gpus >= workers:
        return f"{who}, a GPU each ({torch.cuda.get_device_name()})"
    return f"{who} sharing {gpus} GPU{'s' * (gpus > 1)} ({torch.cuda.get_device_name()})"


def autocast(device: torch.device) -> AbstractContextManager:
    """bfloat16 arithmetic where the hardware has it (it is faster), float32 elsewhere."""
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        fast = has.get("avx512_bf16") or has.get("amx_bf16")
    return torch.autocast(device.type, dtype=torch.bfloat16) if fast else nullcontext()


def wait_for_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Sleep until the all-reduces that `backward()` began are done; with a plain optimizer there are none.

    Horovod's own wait spins, so with more workers than cores they take the cores from the threads that communicate.
    After this call Horovod finds every gradient ready: the same numbers, sooner. (It keeps its handles in `_handles`
    and offers no public way to them; the version is pinned.)
    """
    handles = [handle for handle, _ in getattr(optimizer, "_handles", {}).values() if isinstance(handle, int)]
    if handles:
        import horovod.torch as hvd

        for handle in handles:
            while not hvd.poll(handle):
                time.sleep(POLL_SECONDS)
