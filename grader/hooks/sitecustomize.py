"""Python runs this file at the start of every worker that the grader launches (its folder is on PYTHONPATH).

It writes a line an update to `rank<r>.jsonl` in the folder GRADER_OBSERVE: the learning rates, the training images
used since the last update, and a hash of the weights after it (before it as well at the first update). It only uses
public hook points: audit events, and PyTorch's global optimizer hooks. What it writes comes from inside the learner's
process and explains; the grader believes it only where evidence from outside agrees.
"""

import contextlib
import json
import os
import sys
import time
import zlib


class Observer:
    """Follows one worker's updates and writes them down."""

    def __init__(self, path: str):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self.file = os.fdopen(descriptor, "w", buffering=1)
        self.started = time.time()
        self.images: list[int] = []
        self.updates = 0
        self.depth = 0  # Horovod's optimizer calls step() of the optimizer that it wraps: one update, not two

    def audit(self, event: str, args: tuple) -> None:
        """Note which training images a batch holds."""
        if event == "cifar.batch" and args[0] == "train":
            self.images.extend(args[1].tolist())

    def before_step(self, optimizer, args, kwargs) -> None:
        """Write the first line before the first update."""
        if self.depth == 0 and self.updates == 0:
            size = sum(parameter.numel() * parameter.element_size() for parameter in parameters(optimizer))
            self.write(start=weights_hash(optimizer), bytes=size, size=horovod_size())
        self.depth += 1

    def after_step(self, optimizer, args, kwargs) -> None:
        """Write a line after each update."""
        self.depth -= 1
        if self.depth == 0:
            self.updates += 1
            rates = [float(group["lr"]) for group in optimizer.param_groups]
            self.write(update=self.updates, lr=rates, images=self.images, weights=weights_hash(optimizer))
            self.images.clear()

    def write(self, **seen: object) -> None:
        """Write one line; readers may see it at once."""
        line = {"v": 1, "seconds": round(time.time() - self.started, 3), **seen}
        self.file.write(json.dumps(line) + "\n")


def parameters(optimizer) -> list:
    """All parameters of an optimizer, in its order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def horovod_size() -> int:
    """How many workers Horovod connects this one with; 1 if the program does not use it."""
    hvd = sys.modules.get("horovod.torch")
    return hvd.size() if hvd and hvd.is_initialized() else 1


def weights_hash(optimizer) -> int:
    """A hash of all weights' bytes: equal on two workers if and, as good as certainly, only if the weights are."""
    value = 0
    for parameter in parameters(optimizer):
        value = zlib.crc32(parameter.detach().cpu().contiguous().numpy().data, value)
    return value


def observe(path: str) -> None:
    """Follow this process's updates from now on."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    observer = Observer(path)
    sys.addaudithook(observer.audit)
    register_optimizer_step_pre_hook(observer.before_step)
    register_optimizer_step_post_hook(observer.after_step)


if "GRADER_OBSERVE" in os.environ and "HOROVOD_RANK" in os.environ:
    with contextlib.suppress(FileExistsError):  # a helper process of a worker that is observed already
        observe(f"{os.environ['GRADER_OBSERVE']}/rank{int(os.environ['HOROVOD_RANK'])}.jsonl")
