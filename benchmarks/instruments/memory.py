"""Peak memory of updates or of evaluations, in a process of its own: `peak("training", images, labels, device)`.

The system records the largest memory that a process ever had, so each measurement needs a new process. On a GPU,
PyTorch's allocator counts instead.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.instruments.step_timing import Stepper
from cifar.data import normalise
from cifar.support.environment import cores

# Bytes. glibc returns larger blocks to the system as soon as they are freed, so the peak is what was needed.
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536"}
REPEATS = 2  # the first update creates the optimizer's state, so only the second one uses it from the start


def peak(mode: str, images: Tensor, labels: Tensor, device: str) -> int:
    """The bytes by which `mode` ("training" or "evaluation") raises the peak memory, for uint8 images `(B, 3, 32, 32)`.

    Raises RuntimeError if the measuring process fails.
    """
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        path = Path(folder) / "batch.pt"
        torch.save((images.cpu(), labels.cpu()), path)
        command = [sys.executable, "-m", "benchmarks.instruments.memory", mode, path, device]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | GIVE_BACK)
    if done.returncode != 0:
        raise RuntimeError(f"measuring memory failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def _measure(mode: str, path: str, device: str) -> int:
    torch.set_num_threads(cores())
    images, labels = (tensor.to(device) for tensor in torch.load(path))
    before = _most(device)
    step = Stepper(torch.device(device))
    work = step if mode == "training" else step.evaluate
    for _ in range(REPEATS):
        work(normalise(images), labels)
    return _most(device) - before


def _most(device: str) -> int:
    """The largest number of bytes that this process has used so far, of the GPU's memory or of the machine's."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")  # on Linux ru_maxrss would start from the parent process's memory
    if status.exists():
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS counts in bytes


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
