"""Gives each worker process its device and threads, and waits for gradients.

Workers that share cores must leave them to each other. This is done in four ways:

- A worker sleeps while it waits, where Horovod would keep its core busy (`wait_for_gradients`).
- It takes only its share of the threads (`use_device`).
- Horovod's workers agree on work less often, and hardly ever while there is none (`cifar.support.environment`).
- With `groups=1` in its script, a worker sends all gradients in one buffer.

The lab of lesson 04 shows what each of these is worth. At most the order of the sums changes.
"""

import ctypes
import gc
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

import torch

from cifar.support import lane
from cifar.support.environment import cores, stop
from cifar.support.lazy_dynamo import put_off_compiler

Arithmetic = Callable[[torch.device], AbstractContextManager]  # It gives the number format to compute in on a device.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # These are glibc's numbers for two options of its allocator, from malloc.h.
# A waiting worker asks once per millisecond. That is short beside an update on a CPU, and long enough for other workers
# to use the core.
POLL_SECONDS = 0.001

put_off_compiler()  # This happens on import, because every optimizer would import the compiler before its first step.
# PyTorch has been imported by now, and its many objects live until the process ends. Python need not search them for
# garbage. At the end this takes a fifth of a second, and several workers on few cores wait for each other.
gc.freeze()


def use_device(wanted: str, local_rank: int = 0, local_size: int = 1) -> torch.device:
    """Return the device for this worker, and limit PyTorch to this worker's share of the threads.

    `wanted` is `auto`, `cpu` or `cuda`. `local_rank` and `local_size` count the workers of this machine. Each worker
    gets its own GPU if there are enough. Otherwise workers share the GPUs. Without a GPU they use the CPU. Each worker
    has `max(1, cores // local_size)` threads. The first worker of the machine prints what was chosen. If `cuda` is
    impossible, the program ends with one line.
    """
    gpus = torch.cuda.device_count() if wanted != "cpu" else 0
    if wanted == "cuda" and gpus == 0:
        stop("--device cuda: PyTorch sees no GPU here. Use --device cpu, or install a CUDA build of PyTorch.")
    # Several workers may be on one machine, or on several machines with one worker each.
    several = local_size > 1 or int(os.environ.get("HOROVOD_SIZE", 1)) > 1
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
    """Let glibc keep freed memory.

    By default glibc gives the memory of every large activation back to the system. The next activation then needs new
    pages, which takes time.
    """
    with suppress(AttributeError, OSError):  # Another C library may have no such function.
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def _horovod_reads_gpu() -> bool:
    """Return whether Horovod was built with CUDA. Without, it may read a gradient on the GPU before it is computed."""
    import horovod.torch as hvd

    return bool(hvd.cuda_built())


def _placement(workers: int, gpus: int, threads: int) -> str:
    who = "1 worker" if workers == 1 else f"{workers} workers"
    if gpus == 0:
        return f"{who} on the CPU, {threads} thread{'s' * (threads > 1)}{' each' * (workers > 1)}"
    if gpus >= workers:
        return f"{who}, a GPU each ({torch.cuda.get_device_name()})"
    return f"{who} sharing {gpus} GPU{'s' * (gpus > 1)} ({torch.cuda.get_device_name()})"


def autocast(device: torch.device) -> AbstractContextManager:
    """Return a context that computes in bfloat16 if the hardware has it, because it is faster, and else in float32."""
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        fast = has.get("avx512_bf16") or has.get("amx_bf16")
    return torch.autocast(device.type, dtype=torch.bfloat16) if fast else nullcontext()


def wait_for_gradients(optimizer: torch.optim.Optimizer) -> None:
    """Sleep until the all-reduces that `backward()` began are done. A plain optimizer has none.

    Horovod's own wait keeps a core busy. With more workers than cores, the waiting workers would take the cores from
    the threads that communicate. After this call Horovod finds every gradient ready. The numbers are the same, and they
    come sooner. Horovod keeps its handles in the private attribute `_handles`, and there is no public way to them. This
    works because the version of Horovod is fixed.
    """
    handles = [handle for handle, _ in getattr(optimizer, "_handles", {}).values() if isinstance(handle, int)]
    if handles:
        import horovod.torch as hvd

        lane.tell("waiting")
        for handle in handles:
            while not hvd.poll(handle):
                time.sleep(POLL_SECONDS)
        lane.tell("computing")
