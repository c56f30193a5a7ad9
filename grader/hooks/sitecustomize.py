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


def _observe(path: str) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644), "w", buffering=1)
    images: list[int] = []
    depth = 0  # Horovod's optimizer calls step() of the optimizer that it wraps: one update, not two

    def audit(event: str, args: tuple) -> None:
        if event == "cifar.batch" and args[0] == "train":
            images.extend(args[1].tolist())

    def write(**seen: object) -> None:
        file.write(json.dumps({"v": 1, "seconds": round(time.time() - begun, 3), **seen}) + "\n")

    def before(optimizer, args, kwargs) -> None:
        nonlocal depth
        if depth == 0 and write.updates == 0:
            write(start=_weights_hash(optimizer), bytes=_bytes(optimizer), size=_horovod_size())
        depth += 1

    def after(optimizer, args, kwargs) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0:
            write.updates += 1
            rates = [float(group["lr"]) for group in optimizer.param_groups]
            write(update=write.updates, lr=rates, images=images, weights=_weights_hash(optimizer))
            images.clear()

    begun, write.updates = time.time(), 0
    sys.addaudithook(audit)
    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def _parameters(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _bytes(optimizer) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in _parameters(optimizer))


def _horovod_size() -> int:
    """How many workers Horovod connects this one with; 1 if the program does not use it."""
    hvd = sys.modules.get("horovod.torch")
    return hvd.size() if hvd and hvd.is_initialized() else 1


def _weights_hash(optimizer) -> int:
    value = 0
    for parameter in _parameters(optimizer):
        value = zlib.crc32(parameter.detach().cpu().contiguous().numpy().data, value)
    return value


if "GRADER_OBSERVE" in os.environ and "HOROVOD_RANK" in os.environ:
    with contextlib.suppress(FileExistsError):  # a helper process of a worker that is observed already
        _observe(f"{os.environ['GRADER_OBSERVE']}/rank{int(os.environ['HOROVOD_RANK'])}.jsonl")
