"""Peak memory of updates or of evaluations, in a process of its own: `peak("training", images, labels, device)`.

The system counts the most memory that a process ever had, so each measurement needs a new one. A GPU's allocator counts
for itself.
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

GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # glibc returns freed tensors at once: the peak is what was needed
REPEATS = 2  # the optimizer's state comes into being at the end of the first update


def peak(mode: str, images: Tensor, labels: Tensor, device: str) -> int:
    """Bytes by which `mode` (training or evaluation) raises the memory in use; uint8 images `(B, 3, 32, 32)`."""
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
    """The most bytes this process has had so far: of the GPU's, or of the machine's."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")  # on Linux ru_maxrss begins with what the parent process had
    if status.exists():
        return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
