"""Says when there is no point in going on with a run: it hangs, takes too long, or trains four separate networks."""

import time

import horovod.torch as hvd
import torch

from cifar.model import ResNet9
from cifar.training import train_epoch
from grader.common.contract import NETWORK_WIDTH, WORKERS, Profile
from grader.run import hang_diagnosis
from grader.run.process_monitor import OutsideView
from grader.run.worker_log import read_worker
from grader.sandbox.run_paths import RunPaths

LIMIT = 5  # times the reference's time: stock Horovod's waiting on few cores fits in, and bf16 where it is emulated
START_SECONDS = 30  # for Python, PyTorch, Horovod and the data on all workers
PATIENCE_SECONDS = 20  # without an update of any worker, at the least: then it is a hang
PATIENCE = 0.2  # of the reference's time: an evaluation, or saving, may lie between two updates
FIRST_UPDATES, START_PATIENCE = 2, 3  # the first ones choose kernels: times as much until they are made
SLOW = 5  # times the longest wait for an update so far: a slow worker beside three that spin may need that once more
SEPARATE_UPDATES = 20  # after so many updates without Horovod there is nothing more to learn from the run
PROBE_IMAGES, PROBE_UPDATES = 64, 6  # a second on two slow cores: an expected time needs no more


def reference_seconds(profile: Profile) -> float:
    """How long the reference may take on this machine, from the speed of a few of its updates here and now."""
    device = torch.device("cuda" if torch.cuda.is_available() and hvd.cuda_built() else "cpu")
    net = ResNet9(NETWORK_WIDTH).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1)
    images = torch.zeros(PROBE_IMAGES, 3, 32, 32, dtype=torch.uint8, device=device)
    batch = (images, torch.zeros(PROBE_IMAGES, dtype=torch.int64, device=device))
    train_epoch(net, optimizer, scheduler, [batch] * 2)  # the first updates choose kernels
    started = time.perf_counter()
    train_epoch(net, optimizer, scheduler, [batch] * PROBE_UPDATES).item()
    seconds_an_image = (time.perf_counter() - started) / (PROBE_UPDATES * PROBE_IMAGES)
    return START_SECONDS + profile.epochs * profile.train_images * seconds_an_image * 1.4  # 4 workers share the machine


class Watchdog:
    """Decides, from what is seen of a run while it goes, whether to stop it.

    `limit_seconds` is how long a run may take. `patience_seconds` is how long it may make no update.
    """

    def __init__(self, expected_seconds: float):
        """`expected_seconds` is how long the reference takes on this machine: see `reference_seconds`."""
        self.limit_seconds = LIMIT * expected_seconds
        self.patience_seconds = max(PATIENCE_SECONDS, PATIENCE * expected_seconds)
        self.updates, self.last_update_at, self.longest_wait = [0] * WORKERS, 0.0, 0.0
        self.connected: bool | None = None

    def check(self, seconds: float, updates: list[int], outside: OutsideView, paths: RunPaths) -> str | None:
        """Why to stop the run, in a line for the learner, or None to let it go on.

        The run has gone on for `seconds`, and each worker has made so many `updates`.
        """
        if updates != self.updates:
            self.longest_wait = max(self.longest_wait, seconds - self.last_update_at) if any(self.updates) else 0.0
            self.updates, self.last_update_at = updates, seconds
        if seconds - self.last_update_at > self._patience():
            return hang_diagnosis.describe(seconds - self.last_update_at, updates, outside.running, paths)
        if seconds > self.limit_seconds:
            return (
                f"Stopped after {seconds:.0f} s, {LIMIT} times what the reference takes on this machine. "
                f"Updates by worker: {', '.join(map(str, updates))}. Does every worker use all images?"
            )
        if min(updates) >= SEPARATE_UPDATES and not self._connected(paths):
            return (
                f"Stopped after {min(updates)} updates: Horovod does not connect the workers, so they train "
                f"{WORKERS} separate networks. Start with hvd.init() and hvd.DistributedOptimizer."
            )
        return None

    def _patience(self) -> float:
        """Seconds without an update that are not yet a hang."""
        if max(self.updates) < FIRST_UPDATES:
            return START_PATIENCE * self.patience_seconds
        return max(self.patience_seconds, SLOW * self.longest_wait)

    def _connected(self, paths: RunPaths) -> bool:
        """Whether Horovod connected a worker with others at its first update; looked up once."""
        if self.connected is None:
            workers = [read_worker(paths.worker_log(rank)) for rank in range(WORKERS)]
            self.connected = any(worker.first and worker.first.size > 1 for worker in workers)
        return self.connected
