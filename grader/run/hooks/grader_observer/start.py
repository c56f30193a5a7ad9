"""Starts the observer in a worker.

The observer only uses public hook points: audit events, PyTorch's hooks on optimizers, modules and gradients, threads'
frames, and Horovod's timeline. What it writes comes from inside the learner's process, so it can be forged. It explains
a grade, and the grader believes it only where evidence from outside agrees.
"""

import atexit
import os
import sys

from .helper_fetches import HelperFetches
from .log_writer import LogWriter
from .output_watcher import OutputWatcher
from .stack_sampler import StackSampler


def observe(folder: str, rank: int) -> None:
    """Follow this process's updates from now on, and write them into `folder`."""
    try:
        log = LogWriter(folder, rank)
    except FileExistsError:  # this is a helper process of a worker that is observed already
        observe_helper(folder, rank)
        return
    observe_updates(folder, rank, log, StackSampler(log.write_stack))


def observe_helper(folder: str, rank: int) -> None:
    """Note the images that this process fetches for a worker."""
    helpers = HelperFetches(folder, rank)

    def audit(event: str, args: tuple) -> None:
        if event == "cifar.batch":
            name, indices = args
            helpers.add(name, sys.modules["torch"].is_grad_enabled(), indices.reshape(-1).tolist())

    sys.addaudithook(audit)


def observe_updates(folder: str, rank: int, log: LogWriter, sampler: StackSampler) -> None:
    """Register the hooks.

    PyTorch takes seconds to import, so it is imported here: only in a worker, and after its stack is sampled.
    """
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    from .batch_watcher import BatchWatcher
    from .horovod_state import switch_timeline
    from .update_probe import UpdateProbe
    from .weights_keeper import WeightsKeeper

    def after_update(updates: int) -> None:
        sampler.note_update()
        switch_timeline(folder, updates)

    def audit(event: str, args: tuple) -> None:
        if event == "cifar.batch":
            batches.note(*args)
        elif event == "os.rename":
            output.note_rename(*args)
        elif event == "open":
            output.note_open(*args)

    output = OutputWatcher(os.path.join(os.path.dirname(folder), "output"))
    batches = BatchWatcher(HelperFetches(folder, rank))
    probe = UpdateProbe(log, output, batches, WeightsKeeper(folder, rank), after_update)
    sys.addaudithook(audit)
    register_optimizer_step_pre_hook(probe.before_step)
    register_optimizer_step_post_hook(probe.after_step)
    register_module_forward_pre_hook(probe.networks.before_forward)
    atexit.register(probe.end)
