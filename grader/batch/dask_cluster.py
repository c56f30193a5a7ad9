"""Where a batch's submissions are graded: slots, each of them a process of its own for one four-worker run at a time.

A machine has a slot for every four GPUs, or without GPUs for every four cores, and one at the least. A slot is a Dask
worker with one thread, tied to its share of the cores and GPUs, so that runs side by side do not slow each other down
and a process that dies takes no other run with it.
"""

import asyncio
import contextlib
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

HERE = "127.0.0.1"
TRIES = 3  # a submission that ends its slot's process so often is not tried again
LOOK_SECONDS = 1.0  # how often to look for slots that came or went
CONNECT_SECONDS = 5  # for a scheduler to answer
GATHER_SECONDS = 60  # to fetch a report; one that takes longer is lost
SLOW_DISK = "Creating scratch directories"  # how a warning of Dask's begins that concerns nobody here
DASK = {
    "distributed.deploy.lost-worker-timeout": "1 day",  # to start a process anew can take long
    "distributed.nanny.pre-spawn-environ": {},  # it would write OMP_NUM_THREADS=1 into our own environment
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class SlotError(GraderError):
    """There is nowhere to grade; the message is one line."""


@dataclass(frozen=True)
class Submission:
    """A submission as it travels to a slot. `folder`: a safe name for its report's; `source`: its files' hash."""

    name: str
    folder: str
    source: str
    files: dict[str, bytes]


Files = dict[str, str]  # a report's files by name; `report.json` is one of them
Grade = Callable[[Submission, Settings, Path], Files]  # the last: an empty folder to work in


@dataclass(frozen=True)
class Slot(WorkerPlugin):
    """A share of a machine: numbers of cores, names of GPUs. Ties the Dask worker that it is given to, to this."""

    cores: list[int]
    gpus: list[str]

    def setup(self, worker) -> None:
        """Called by Dask in the new process, before it takes work; threads and programs started there inherit it."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the batch, which then ends its slots
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, self.cores)
        if self.gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(self.gpus)


def of_this_machine(most: int = sys.maxsize) -> list[Slot]:
    """This machine's slots, `most` at most; they share what this process may use of it."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
    gpus = _gpus()
    count = min(most, max(1, len(gpus or cores) // WORKERS))
    return [Slot(_share(cores, number, count), _share(gpus, number, count)) for number in range(count)]


def _share(things: list, number: int, count: int) -> list:
    return things[number * len(things) // count : (number + 1) * len(things) // count]


def _gpus() -> list[str]:
    """The GPUs that runs use here, as CUDA_VISIBLE_DEVICES calls them."""
    import horovod.torch as hvd  # takes seconds, and only who has slots to offer needs to know
    import torch

    count = torch.cuda.device_count() if hvd.cuda_built() else 0
    names = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return [name.strip() for name in names.split(",")][:count]


def _options(slot: Slot, folder: Path) -> dict:
    """How Dask starts a slot's process; its files, and those of a process that died, lie below `folder`."""
    return {
        "nthreads": 1, "resources": {"slot": 1}, "plugins": (slot,), "local_directory": str(folder),
        "memory_limit": 0, "dashboard": False, "silence_logs": logging.CRITICAL,
    }  # fmt: skip


@contextlib.contextmanager
def local(slots: list[Slot], folder: Path) -> Iterator[Client]:
    """A cluster of this machine's `slots`, which listens on the loopback only; at the end nothing of it is left."""
    # Whoever may talk to a scheduler runs programs as its user: the others on this machine have no key to it.
    security = Security.temporary()
    here = {"host": HERE, "protocol": "tls://", "security": security}
    options = here | {"port": 0, "dashboard": False, "dashboard_address": f"{HERE}:0"}
    scheduler = {"cls": Scheduler, "options": options}
    workers = {number: {"cls": Nanny, "options": here | _options(slot, folder)} for number, slot in enumerate(slots)}
    _clear(folder)
    try:
        with _dask(), SpecCluster(workers, scheduler, security=security) as cluster, Client(cluster) as client:
            yield client
    finally:
        _clear(folder)


@contextlib.contextmanager
def _dask() -> Iterator[None]:
    """Dask as it is needed here. Its warnings stay silent: what matters of them comes as an error, and is one line."""
    logging.disable(logging.CRITICAL)
    sys.warnoptions.append(f"ignore:{SLOW_DISK}:UserWarning")  # processes that are started get these
    try:
        with dask.config.set(DASK), warnings.catch_warnings():
            warnings.filterwarnings("ignore", SLOW_DISK, UserWarning)
            yield
    finally:
        sys.warnoptions.remove(f"ignore:{SLOW_DISK}:UserWarning")
        logging.disable(logging.NOTSET)


def _clear(folder: Path) -> None:
    """Remove what slots left in a folder: files, and the processes of runs that were not sandboxed."""
    for _ in range(10):  # they may be starting others
        if not (left := list(_left(folder))):
            break
        process_tree.kill(left, seconds=1)
    shutil.rmtree(folder, ignore_errors=True)


def _left(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("GRADER_OBSERVE", "").startswith(f"{folder}/"):
                yield process


@contextlib.contextmanager
def remote(address: str) -> Iterator[Client]:
    """The cluster of machines whose scheduler is at `address`. Raises SlotError if it does not answer."""
    with _dask():
        try:
            client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError):
            raise _no_scheduler(address) from None
        with client:
            yield client


def _no_scheduler(address: str) -> SlotError:
    return SlotError(f"no Dask scheduler answers at {address}: start one with `dask scheduler`")


def join(address: str) -> None:
    """Offer this machine's slots to the scheduler at `address` until it ends; SlotError if it does not answer."""

    async def offer(folder: Path) -> None:
        nannies = [Nanny(address, **_options(slot, folder)) for slot in of_this_machine()]
        await asyncio.gather(*nannies)
        await asyncio.gather(*(nanny.finished() for nanny in nannies))

    with tempfile.TemporaryDirectory(prefix="grader-slots-") as folder, _dask():
        try:
            asyncio.run(offer(Path(folder)))
        except (RuntimeError, ValueError):  # "Nanny failed to start", after half a minute; not an address
            raise _no_scheduler(address) from None
        finally:
            _clear(Path(folder))


@dataclass(frozen=True)
class Outcome:
    """What came back from a slot: a report's files, or else why the grader failed; and the seconds it took."""

    files: Files
    seconds: float
    failure: str = ""


LOST = "the Dask scheduler is lost; when it is there again, the same command goes on"


def places(client: Client) -> dict[str, int]:
    """Where the cluster has slots at this moment: how many, by the Dask worker's address."""
    with _answering():
        workers = client.scheduler_info().get("workers")
    if workers is None:  # what Dask answers for a moment when the connection has just gone
        raise SlotError(LOST)
    return {address: int(worker["resources"].get("slot", 0)) for address, worker in workers.items()}


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (OSError, CancelledError, ClosedClientError):
        raise SlotError(LOST) from None


Running = dict[Future, tuple[Submission, str]]


def grade_all(
    client: Client, submissions: Iterable[Submission], settings: Settings, grade: Grade
) -> Iterator[tuple[Submission, Outcome | None]]:
    """Have all submissions graded, and yield each when it is; None if it ended its slot's process TRIES times.

    Each is sent to a slot that is free, and to no other. Left to itself, Dask lets several wait for one process, and
    blames its death on all of them. Raises SlotError if a machine cannot grade, or the scheduler is lost.
    """
    waiting, running, deaths = deque(submissions), {}, Counter()
    with _answering():
        while waiting or running:
            there = places(client)
            for submission in _lost(running, there):
                deaths[submission.folder] += 1
                if deaths[submission.folder] == TRIES:
                    yield submission, None
                else:
                    waiting.append(submission)
            for place in _free(running, there)[: len(waiting)]:
                submission = waiting.popleft()
                task = work, grade, submission, settings
                running[client.submit(*task, workers=[place], resources={"slot": 1}, pure=False)] = submission, place
            for future, outcome in _ended(running):
                yield running.pop(future)[0], outcome


def _lost(running: Running, there: dict[str, int]) -> list[Submission]:
    """Take those out whose slot's process has ended."""
    lost = [future for future, (_, place) in running.items() if place not in there]
    return [running.pop(future)[0] for future in lost]


def _free(running: Running, there: dict[str, int]) -> list[str]:
    busy = Counter(place for _, place in running.values())
    return [place for place, count in there.items() for _ in range(count - busy[place])]


def _ended(running: Running) -> Iterator[tuple[Future, Outcome | None]]:
    """What ends within a second."""
    deadline = time.monotonic() + LOOK_SECONDS
    while not (done := [future for future in running if future.done()]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for future in done:
        try:
            yield future, future.result(timeout=GATHER_SECONDS)
        except TimeoutError:
            pass  # its process died with the outcome
        except KilledWorker:  # so often that Dask gave up: its process comes back at the same address
            yield future, None
        except (ImportError, RuntimeError) as error:  # what Dask raises where our functions are not known
            told = str(error).splitlines()[0]
            raise SlotError(f"start scheduler and machines in this course's environment: {told}") from None


def work(grade: Grade, submission: Submission, settings: Settings) -> Outcome:
    """Grade one submission in a slot. Raises SlotError if this machine cannot grade."""
    if settings.grader != GRADER:
        raise SlotError(f"{socket.gethostname()} has another version of the course: install the same one there")
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(dir=get_worker().local_directory) as folder:
            files, failure = grade(submission, settings, Path(folder)), ""
    except SlotError:
        raise
    except Exception as error:  # the grader's mistake must not end the class's grading, nor cost the learner points
        files, failure = {}, f"{type(error).__name__}: {error}"
    return Outcome(files, time.monotonic() - started, failure)


def hash_files(files: dict[str, bytes]) -> str:
    """One hash for files, names included."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(json.dumps([name, len(content)]).encode() + b"\n" + content)
    return digest.hexdigest()


def _own_source() -> dict[str, bytes]:
    """What decides a grade: the grader's and the course's programs and settings, but not what nbgrader keeps there."""
    files = {}
    for root in (Path(__file__).parents[1], Path(cifar.__file__).parent):
        for path in [*root.rglob("*.py"), *root.rglob("*.json")]:
            name = path.relative_to(root)
            if name.parts[0] != "work":
                files[f"{root.name}/{name}"] = path.read_bytes()
    return files


GRADER = hash_files(_own_source())  # as it was when this process loaded it
