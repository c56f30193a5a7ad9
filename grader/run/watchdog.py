"""Stops a run that hangs, takes too long, or trains four separate networks."""

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

# A run may take this many times as long as the reference. Stock Horovod waits much on few cores, and bf16 is slow where
# the processor emulates it.
LIMIT_FACTOR = 5
START_SECONDS = 30  # the time that all workers need to load Python, PyTorch, Horovod and the data
# A run hangs if no worker makes an update for this long, or for this share of the reference's time if that is longer.
# An evaluation, or saving a checkpoint, may lie between two updates.
MIN_PATIENCE_SECONDS, PATIENCE_SHARE = 20, 0.2
# The patience begins when all workers have imported their modules, or after this time. On a busy machine, imports take
# minutes.
MAX_IMPORT_SECONDS = 300
# Until the first updates are made, the patience is this many times as long: PyTorch chooses its kernels in them.
FIRST_UPDATES, FIRST_UPDATES_FACTOR = 2, 3
# The patience is at least this many times the longest wait for an update so far. A worker is slow beside three that
# keep the cores busy while they wait for it.
LONGEST_WAIT_FACTOR = 5
COMPILING_SECONDS = 300  # the patience with torch.compile, which takes four workers 100 s on two cores
SEPARATE_UPDATES = 20  # a run whose workers are not connected by now will not connect them
PROBE_IMAGES, PROBE_UPDATES = 64, 6  # these take one second on two slow cores, and an estimate needs no more
SHARING_FACTOR = 1.4  # four workers on one machine take longer than one process with all its cores


def reference_seconds(profile: Profile) -> float:
    """How long the reference may take on this machine. A few of its updates are made here and timed."""
    device = torch.device("cuda" if torch.cuda.is_available() and hvd.cuda_built() else "cpu")
    net = ResNet9(NETWORK_WIDTH).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1)
    images = torch.zeros(PROBE_IMAGES, 3, 32, 32, dtype=torch.uint8, device=device)
    batch = (images, torch.zeros(PROBE_IMAGES, dtype=torch.int64, device=device))
    train_epoch(net, optimizer, scheduler, [batch] * 2)  # the first updates choose kernels
    started = time.perf_counter()
    train_epoch(net, optimizer, scheduler, [batch] * PROBE_UPDATES).item()
    seconds_per_image = (time.perf_counter() - started) / (PROBE_UPDATES * PROBE_IMAGES)
    return START_SECONDS + profile.epochs * profile.train_images * seconds_per_image * SHARING_FACTOR


class Watchdog:
    """Decides while a run goes on whether to stop it.

    `limit_seconds` is how long a run may take. `patience_seconds` is how long it may make no update.
    """

    def __init__(self, expected_seconds: float):
        """`expected_seconds` is how long the reference takes on this machine: see `reference_seconds`.

        The time that all workers need to import their modules is not counted.
        """
        self.limit_seconds = LIMIT_FACTOR * expected_seconds
        self.patience_seconds = max(MIN_PATIENCE_SECONDS, PATIENCE_SHARE * expected_seconds)
        self.updates, self.last_update_at, self.longest_wait = [0] * WORKERS, 0.0, 0.0
        self.imported_at = 0.0
        self.connected: bool | None = None

    def check(self, seconds: float, updates: list[int], outside: OutsideView, paths: RunPaths) -> str | None:
        """Returns one line that tells the learner why to stop the run, or None to let it go on.

        `seconds` is how long the run has gone on. `updates` is how many updates each worker has made, by rank.
        """
        if updates != self.updates:
            self.longest_wait = max(self.longest_wait, seconds - self.last_update_at) if any(self.updates) else 0.0
            self.updates, self.last_update_at = updates, seconds
        if not any(updates) and seconds < MAX_IMPORT_SECONDS and hang_diagnosis.starting(paths, outside.running):
            self.last_update_at = self.imported_at = seconds
        waited = seconds - self.last_update_at
        if waited > self._patience() and (waited > COMPILING_SECONDS or not hang_diagnosis.compiling(paths)):
            return hang_diagnosis.describe(waited, updates, outside.running, paths)
        if seconds - self.imported_at > self.limit_seconds:
            return (
                f"Stopped after {seconds:.0f} s, {LIMIT_FACTOR} times what the reference takes on this machine. "
                f"Updates by worker: {', '.join(map(str, updates))}. Does every worker use all images?"
            )
        if min(updates) >= SEPARATE_UPDATES and not self._connected(paths):
            return (
                f"Stopped after {min(updates)} updates: Horovod does not connect the workers, so they train "
                f"{WORKERS} separate networks. Start with hvd.init() and hvd.DistributedOptimizer."
            )
        return None

    def _patience(self) -> float:
        """How many seconds without an update are not yet a hang."""
        if max(self.updates) < FIRST_UPDATES:
            return FIRST_UPDATES_FACTOR * self.patience_seconds
        return max(self.patience_seconds, LONGEST_WAIT_FACTOR * self.longest_wait)

    def _connected(self, paths: RunPaths) -> bool:
        """Whether Horovod connected a worker with others at its first update. The logs are read once."""
        if self.connected is None:
            workers = [read_worker(paths.worker_log(rank)) for rank in range(WORKERS)]
            self.connected = any(worker.first and worker.first.size > 1 for worker in workers)
        return self.connected
