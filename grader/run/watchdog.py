"""Watches a run from outside while it goes: shows how far it is, and says when there is no point in going on."""

import time

import horovod.torch as hvd
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cifar.model import ResNet9
from cifar.training import train_epoch
from grader.common.contract import NETWORK_WIDTH, WORKERS, Profile
from grader.run import hang_diagnosis
from grader.run.process_monitor import Seen
from grader.run.worker_log import read_worker
from grader.sandbox.run_paths import Folders

LIMIT = 5  # times the reference's time: stock Horovod's waiting on few cores fits in, and bf16 where it is emulated
START_SECONDS = 30  # for Python, PyTorch, Horovod and the data on all workers
PATIENCE_SECONDS = 20  # without an update of any worker, at the least: then it is a hang
PATIENCE = 0.2  # of the reference's time: an evaluation, or saving, may lie between two updates
FIRST_UPDATES, START_PATIENCE = 2, 3  # the first ones choose kernels: times as much until they are made
SLOW = 5  # times the longest wait for an update so far: a slow worker beside three that spin may need that once more
SEPARATE_UPDATES = 20  # after so many updates without Horovod there is nothing more to learn from the run
REPORT_SECONDS = 20
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


class Watch:
    """Called while a run goes with what is known of it; returns why to stop it, or an empty string."""

    def __init__(self, profile: Profile, console: Console):
        expected = reference_seconds(profile)
        self.limit, self.patience = LIMIT * expected, max(PATIENCE_SECONDS, PATIENCE * expected)
        self.updates, self.moved, self.longest = [0] * WORKERS, 0.0, 0.0
        self.console, self.last_report = console, 0.0
        self.connected: bool | None = None
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
        self.bar = Progress(*columns, console=console, transient=True)
        self.task = self.bar.add_task("starting four workers", total=profile.updates())

    def __enter__(self) -> "Watch":
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def __call__(self, seconds: float, updates: list[int], outside: Seen, folders: Folders) -> str:
        self._show(min(updates), seconds)
        if updates != self.updates:
            self.longest = max(self.longest, seconds - self.moved) if any(self.updates) else 0.0
            self.updates, self.moved = updates, seconds
        if seconds - self.moved > self._patience():
            return hang_diagnosis.describe(seconds - self.moved, updates, outside.running, folders)
        if seconds > self.limit:
            return (
                f"Stopped after {seconds:.0f} s, {LIMIT} times what the reference takes on this machine. "
                f"Updates by worker: {', '.join(map(str, updates))}. Does every worker use all images?"
            )
        if min(updates) >= SEPARATE_UPDATES and not self._connected(folders):
            return (
                f"Stopped after {min(updates)} updates: Horovod does not connect the workers, so they train "
                f"{WORKERS} separate networks. Start with hvd.init() and hvd.DistributedOptimizer."
            )
        return ""

    def _patience(self) -> float:
        """Seconds without an update that are not yet a hang."""
        if max(self.updates) < FIRST_UPDATES:
            return START_PATIENCE * self.patience
        return max(self.patience, SLOW * self.longest)

    def _connected(self, folders: Folders) -> bool:
        """Whether Horovod connected a worker with others at its first update; looked up once."""
        if self.connected is None:
            workers = [read_worker(folders.lines(rank)) for rank in range(WORKERS)]
            self.connected = any(worker.first and worker.first.size > 1 for worker in workers)
        return self.connected

    def _show(self, updates: int, seconds: float) -> None:
        total = int(self.bar.tasks[0].total)
        text = f"training: update {updates} of {total}" if updates else "starting four workers"
        self.bar.update(self.task, completed=updates, description=text)
        if not self.console.is_terminal and seconds - self.last_report >= REPORT_SECONDS:
            self.last_report = seconds
            self.console.print(f"{text}, {seconds:.0f} s", highlight=False)
