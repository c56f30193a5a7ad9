"""Grades a batch's submissions in slots. A slot is a process that makes one four-worker run at a time.

A machine has one slot per four GPUs, or without GPUs one slot per four cores, and always at least one. A slot is a Dask
worker with one thread. It is tied to its share of the cores and GPUs, so that runs at the same time do not slow each
other down. If its process dies, no other run ends with it.
"""

import asyncio
import contextlib
import errno
import hashlib
import json
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dask
import psutil
from distributed import (
    CancelledError,
    Client,
    Future,
    KilledWorker,
    Nanny,
    Scheduler,
    Security,
    SpecCluster,
    WorkerPlugin,
    get_worker,
)
from distributed.client import ClosedClientError

import cifar
from cifar.support import process_tree
from grader.batch.journal import Settings
from grader.common.contract import WORKERS
from grader.common.errors import GraderError

LOOPBACK = "127.0.0.1"
TRIES = 3  # a submission that has killed its slot's process so often is not tried again
AWAY_SECONDS = 300  # a machine waits so many seconds for a scheduler that is away
POLL_SECONDS = 1.0  # seconds between two looks for slots that came or went
CONNECT_SECONDS = 30  # a scheduler must answer within so many seconds
REST_SECONDS = 30  # a slot whose machine could not grade gets no submission for so many seconds
MACHINE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)  # a disk is full or broken
GATHER_SECONDS = 60  # a report must arrive within so many seconds, or else its slot has died
SLOW_DISK = "Creating scratch directories"  # a warning of Dask begins so, and a user can do nothing about it
DASK = {
    "distributed.deploy.lost-worker-timeout": "1 day",  # starting a process again can take long
    "distributed.nanny.pre-spawn-environ": {},  # Dask would set OMP_NUM_THREADS=1 in this process's environment
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class SlotError(GraderError):
    """There is no slot to grade in. The message is one line."""


@dataclass(frozen=True)
class Submission:
    """This is a submission as it is sent to a slot.

    `folder` is the name of its report's folder. `source` is the hash of its files. `files` has their contents by name.
    """

    name: str
    folder: str
    source: str
    files: dict[str, bytes]


Files = dict[str, str]  # these are a report's files by name, and one of them is `report.json`
Grade = Callable[[Submission, Settings, Path], Files]  # the path is an empty folder to work in


@dataclass(frozen=True)
class Slot(WorkerPlugin):
    """A slot is a share of a machine: numbers of cores and names of GPUs.

    As a Dask plugin, it ties a worker to that share.
    """

    cores: list[int]
    gpus: list[str]

    def setup(self, worker) -> None:
        """Tie the worker to its share. Dask calls this in the new process, and processes started there inherit it."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C interrupts the batch, which then ends its slots
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cores)
        if self.gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(self.gpus)


def slots_of_this_machine(max_slots: int = sys.maxsize) -> list[Slot]:
    """Return this machine's slots. They share the cores and GPUs that this process may use."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
    gpus = _gpus()
    count = min(max_slots, max(1, len(gpus or cores) // WORKERS))
    return [Slot(share(cores, number, count), share(gpus, number, count)) for number in range(count)]


def share(things: list, number: int, count: int) -> list:
    """Return share `number` of `count` nearly equal shares. Each thing is in one of them."""
    return things[number * len(things) // count : (number + 1) * len(things) // count]


def _gpus() -> list[str]:
    """Return the GPUs that runs use on this machine, as CUDA_VISIBLE_DEVICES names them."""
    import horovod.torch as hvd  # it takes seconds to import, and only a machine with slots needs it
    import torch

    count = torch.cuda.device_count() if hvd.cuda_built() else 0
    names = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return [name.strip() for name in names.split(",")][:count]


def _options(slot: Slot, folder: Path) -> dict:
    """Return how Dask starts a slot's process. Its files are below `folder`, even if the process has died."""
    return {
        "nthreads": 1, "resources": {"slot": 1}, "plugins": (slot,), "local_directory": str(folder),
        "memory_limit": 0, "dashboard": False, "silence_logs": logging.CRITICAL,
    }  # fmt: skip


@contextlib.contextmanager
def local_cluster(slots: list[Slot], folder: Path) -> Iterator[Client]:
    """Run a cluster of this machine's `slots`. It listens only on the loopback. Nothing of it remains at the end."""
    # A client of a scheduler can run programs as the scheduler's user. Other users of this machine have no key to it.
    security = Security.temporary()
    common = {"host": LOOPBACK, "protocol": "tls://", "security": security}
    options = common | {"port": 0, "dashboard": False, "dashboard_address": f"{LOOPBACK}:0"}
    scheduler = {"cls": Scheduler, "options": options}
    workers = {number: {"cls": Nanny, "options": common | _options(slot, folder)} for number, slot in enumerate(slots)}
    clear_leftovers(folder)
    try:
        with (
            _configured_dask(),
            SpecCluster(workers, scheduler, security=security) as cluster,
            Client(cluster) as client,
        ):
            yield client
    finally:
        clear_leftovers(folder)


@contextlib.contextmanager
def _configured_dask() -> Iterator[None]:
    """Configure Dask and silence its log. Problems that matter are also raised as errors, and each becomes one line."""
    logging.disable(logging.CRITICAL)
    sys.warnoptions.append(f"ignore:{SLOW_DISK}:UserWarning")  # new processes of Python inherit these options
    try:
        with dask.config.set(DASK), warnings.catch_warnings():
            warnings.filterwarnings("ignore", SLOW_DISK, UserWarning)
            yield
    finally:
        sys.warnoptions.remove(f"ignore:{SLOW_DISK}:UserWarning")
        logging.disable(logging.NOTSET)


def clear_leftovers(folder: Path) -> None:
    """Remove a folder's files, and kill the processes of runs in it that were not sandboxed."""
    for _ in range(10):  # a process may have started another before it was killed
        if not (processes := list(_processes_of(folder))):
            break
        process_tree.kill(processes, seconds=1)
    shutil.rmtree(folder, ignore_errors=True)


def _processes_of(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("GRADER_OBSERVE", "").startswith(f"{folder}/"):
                yield process


@contextlib.contextmanager
def remote_cluster(address: str) -> Iterator[Client]:
    """Connect to the cluster whose scheduler is at `address`. Raises SlotError if the scheduler does not answer."""
    with _configured_dask():
        try:
            client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError):
            raise _no_scheduler(address) from None
        with client:
            yield client


def _no_scheduler(address: str) -> SlotError:
    return SlotError(
        f"no Dask scheduler answers at {address}: start one with `dask scheduler`, and give both the same DASK_CONFIG"
    )


def join(address: str, say: Callable[[str], object] = print) -> None:
    """Offer this machine's slots to the scheduler at `address` until the scheduler has been away for some minutes.

    A machine that has lost its link to the scheduler offers its slots again as soon as the link is back. Raises
    SlotError if the scheduler does not answer at first.
    """
    lost = None
    while lost is None or time.monotonic() - lost < AWAY_SECONDS:
        with tempfile.TemporaryDirectory(prefix="grader-slots-") as folder, _configured_dask():
            try:
                joined = asyncio.run(_offer(address, Path(folder), say))
            finally:
                clear_leftovers(Path(folder))
        if joined:
            lost = time.monotonic()
            say(f"the scheduler at {address} is away; this machine offers its slots again when it is back")
        elif lost is None:
            raise _no_scheduler(address)


async def _offer(address: str, folder: Path, say: Callable[[str], object]) -> bool:
    """Offer this machine's slots until the scheduler is gone. Return whether it had taken them."""
    try:
        nannies = [Nanny(address, **_options(slot, folder)) for slot in slots_of_this_machine()]
        await asyncio.gather(*nannies)
    except (RuntimeError, ValueError, OSError):  # Dask gave up after half a minute, or the address is malformed.
        return False
    say(f"joined {address}")
    with contextlib.suppress(RuntimeError, OSError):
        await asyncio.gather(*(nanny.finished() for nanny in nannies))
    return True


@dataclass(frozen=True)
class Outcome:
    """A slot returns this for a submission.

    `files` are the report's files. `failure` says why the grader failed, and is empty if it did not. `seconds` is how
    long the grading took. `elsewhere` tells that the machine is to blame, so another one may succeed.
    """

    files: Files
    seconds: float
    failure: str = ""
    elsewhere: bool = False


SCHEDULER_LOST = "the Dask scheduler is lost; when it is there again, the same command goes on"


def count_slots(client: Client) -> dict[str, int]:
    """Return how many slots the cluster has at this moment, by the Dask worker's address."""
    with _scheduler_errors():
        workers = client.scheduler_info().get("workers")
    if workers is None:  # Dask answers so for a moment after the connection is lost
        raise SlotError(SCHEDULER_LOST)
    return {address: int(worker["resources"].get("slot", 0)) for address, worker in workers.items()}


@contextlib.contextmanager
def _scheduler_errors() -> Iterator[None]:
    """Raise SlotError if the scheduler does not answer any more."""
    try:
        yield
    except (OSError, CancelledError, ClosedClientError):
        raise SlotError(SCHEDULER_LOST) from None


Running = dict[Future, tuple[Submission, str]]  # the string is the address of the Dask worker


def grade_all(
    client: Client, submissions: Iterable[Submission], settings: Settings, grade: Grade
) -> Iterator[tuple[Submission, Outcome | None]]:
    """Have all submissions graded, and yield each one with its outcome when it is done.

    The outcome is None for a submission that has killed its slot's process TRIES times. Each submission is sent to a
    slot that is free. Dask's own scheduling would queue several for one process, and blame its death on all of them. If
    a machine cannot grade now, its slot rests, and another one gets the submission. Raises SlotError if no machine can
    grade, or if the scheduler is lost.
    """
    waiting, running, deaths, resting = deque(submissions), {}, Counter(), {}
    with _scheduler_errors():
        while waiting or running:
            slots = count_slots(client)
            for submission in _remove_lost(running, slots):
                deaths[submission.folder] += 1
                if deaths[submission.folder] == TRIES:
                    yield submission, None
                else:
                    waiting.append(submission)
            for address in _free_slots(running, _rested(slots, resting))[: len(waiting)]:
                submission = waiting.popleft()
                task = grade_in_slot, grade, submission, settings
                future = client.submit(*task, workers=[address], resources={"slot": 1}, pure=False)
                running[future] = submission, address
            for future, outcome in _finished(running):
                submission, address = running.pop(future)
                deaths[submission.folder] += bool(outcome and outcome.elsewhere)
                if not (outcome and outcome.elsewhere) or deaths[submission.folder] == TRIES:
                    yield submission, outcome
                    continue
                waiting.append(submission)
                resting[address] = time.monotonic() + REST_SECONDS
                if not running and not _rested(slots, resting):
                    raise SlotError(outcome.failure)


def _remove_lost(running: Running, slots: dict[str, int]) -> list[Submission]:
    """Remove and return the submissions whose slot's process has ended."""
    lost = [future for future, (_, address) in running.items() if address not in slots]
    return [running.pop(future)[0] for future in lost]


def _rested(slots: dict[str, int], resting: dict[str, float]) -> dict[str, int]:
    """Return the slots that do not rest. `resting` has, by the slot's address, the time at which its rest ends."""
    now = time.monotonic()
    return {address: count for address, count in slots.items() if resting.get(address, now) <= now}


def _free_slots(running: Running, slots: dict[str, int]) -> list[str]:
    """Return the addresses of the free slots. An address with several free slots occurs once for each of them."""
    busy = Counter(address for _, address in running.values())
    return [address for address, count in slots.items() for _ in range(count - busy[address])]


def _finished(running: Running) -> Iterator[tuple[Future, Outcome | None]]:
    """Yield the submissions that finish within POLL_SECONDS."""
    deadline = time.monotonic() + POLL_SECONDS
    while not (done := [future for future in running if future.done()]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for future in done:
        try:
            yield future, future.result(timeout=GATHER_SECONDS)
        except TimeoutError:
            pass  # the process died before it sent the outcome, and `_remove_lost` finds this out
        except KilledWorker:  # the process died so often that Dask gave up, and a new one has the same address
            yield future, None
        except (ImportError, RuntimeError) as error:  # Dask raises these if a machine cannot import the grader
            message = str(error).splitlines()[0]
            raise SlotError(f"start scheduler and machines in this course's environment: {message}") from None


def grade_in_slot(grade: Grade, submission: Submission, settings: Settings) -> Outcome:
    """Grade one submission in a slot. Raises SlotError if this machine cannot grade."""
    if settings.grader != GRADER:
        raise SlotError(f"{socket.gethostname()} has another version of the course: install the same one there")
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(dir=get_worker().local_directory) as folder:
            files = grade(submission, settings, Path(folder))
    except SlotError:
        raise
    except OSError as error:
        if error.errno not in MACHINE_ERRORS:
            return _failed(error, started)
        full = f"{socket.gethostname()} cannot write to its disk ({error.strerror}). Free some space there"
        return Outcome({}, 0.0, full, elsewhere=True)
    except Exception as error:  # an error in the grader must neither end the batch nor cost the student points
        return _failed(error, started)
    return Outcome(files, time.monotonic() - started)


def _failed(error: Exception, started: float) -> Outcome:
    return Outcome({}, time.monotonic() - started, f"{type(error).__name__}: {error}")


def hash_files(files: dict[str, bytes]) -> str:
    """Return one hash of the names and the contents of files."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(json.dumps([name, len(content)]).encode() + b"\n" + content)
    return digest.hexdigest()


def _own_source() -> dict[str, bytes]:
    """Return the files that decide a grade.

    These are the grader's and the course's programs and settings, without nbgrader's files.
    """
    files = {}
    for root in (Path(__file__).parents[1], Path(cifar.__file__).parent):
        for path in [*root.rglob("*.py"), *root.rglob("*.json")]:
            name = path.relative_to(root)
            if name.parts[0] != "work":
                files[f"{root.name}/{name}"] = path.read_bytes()
    return files


GRADER = hash_files(_own_source())  # this is the version of the grader that this process has loaded
