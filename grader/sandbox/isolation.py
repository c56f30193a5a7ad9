"""Where a submission's process runs: in a bubblewrap sandbox, or, for one's own code, as oneself.

In the sandbox it has no network but its own loopback, a read-only root with little more than Python in it, its own
process ids, no privileges, an empty environment, limits on memory and processes, and folders in memory, limited in
size, for what it writes. Nothing of it survives its end, also when the grader is killed.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import horovod.torch as hvd
import psutil
import torch

import cifar
from grader.common import untrusted
from grader.common.contract import WORKERS
from grader.sandbox import resource_limits
from grader.sandbox.run_paths import HOOKS, Folders

INSIDE = Folders(Path("/submission"))
INSTALL = "On Debian: sudo apt-get install bubblewrap"
ALLOW = (
    "It is installed, but this machine or container forbids namespaces: see docs/container.md in the course's "
    "repository, and the kernel's setting kernel.apparmor_restrict_unprivileged_userns"
)
ENDED = INSIDE.root / "ended"  # the holder writes the command's exit status there
HOLDER = f'"$@"; echo $? > {ENDED}/status; exec sleep infinity'  # keeps the folders alive until they have been read
DISK_BYTES = 64 * 2**20  # for each folder that the run can write to

Command = Callable[[Folders], list[str]]  # the command line for the folders as the run sees them
Isolation = Callable[[Command, Folders, int], contextlib.AbstractContextManager["Running"]]  # sandbox or trusted


class IsolationError(Exception):
    """The sandbox cannot be had; the message is one line that says what would provide it."""


@dataclass
class Running:
    """A command that runs. `folders` is where what it writes can be read while it lasts."""

    process: subprocess.Popen
    folders: Folders
    status: Callable[[], int | None]
    processes: Callable[[], list[psutil.Process]]
    loopback_bytes: Callable[[], int | None]
    isolation: str


def environment(folders: Folders, home: str, threads: int) -> dict[str, str]:
    """All the environment that a run gets; the observer's hooks come first on Python's path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {
        "PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "OMP_NUM_THREADS": str(threads),
        "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HOOKS),
        "GRADER_OBSERVE": str(folders.observe), "HOROVOD_TIMELINE": "DYNAMIC",
        **{name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ},  # a slot's GPUs
    }  # fmt: skip


@contextlib.contextmanager
def trusted(command: Command, folders: Folders, threads: int) -> Iterator[Running]:
    """Run a command as oneself, isolated from nothing; at the end its processes are looked for and killed."""
    exchanged = _machine_loopback()
    with tempfile.TemporaryDirectory(prefix="grader-home-") as home:
        process = subprocess.Popen(
            command(folders), cwd=folders.source, env=environment(folders, home, threads), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            said = "none: it ran as you, with your files and network"
            yield Running(process, folders, process.poll, lambda: descendants(process.pid), exchanged, said)
        finally:
            _kill_family(process, str(folders.observe))


def _machine_loopback() -> Callable[[], int | None]:
    """A function that tells the bytes sent over the machine's loopback from now on, by all programs together."""

    def total() -> int:
        counters = psutil.net_io_counters(pernic=True, nowrap=False)
        return sum(counters[name].bytes_sent for name in ("lo", "lo0") if name in counters)

    before = total()
    return lambda: None if _gpus_exchange() else total() - before


def _gpus_exchange() -> bool:
    """Whether gradients go from GPU to GPU, past the loopback."""
    return torch.cuda.device_count() >= WORKERS and bool(hvd.nccl_built())


def descendants(pid: int) -> list[psutil.Process]:
    """All processes that descend from a process; none if it has ended."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill_family(process: subprocess.Popen, mark: str) -> None:
    """Kill a process's descendants, and whoever carries its environment (helpers that left the family)."""
    for attempt in range(10):  # they may be starting others, and what just starts shows no environment
        family = descendants(process.pid)
        for other in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if other.pid != process.pid and other.environ().get("GRADER_OBSERVE") == mark:
                    family.append(other)
        if attempt and not family:
            break
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, timeout=1)
        time.sleep(0.05)
    process.kill()
    process.wait()


@contextlib.contextmanager
def sandbox(command: Command, folders: Folders, threads: int) -> Iterator[Running]:
    """Run a command under bubblewrap. Raises IsolationError if it or its limits cannot be had."""
    with tempfile.TemporaryDirectory(prefix="grader-etc-") as etc, resource_limits.limited() as (prefix, limit):
        receive, send = os.pipe()
        held = ["sh", "-c", HOLDER, "holder", *command(INSIDE)]
        line = [*prefix, *_bubblewrap(folders, Path(etc), threads, send), *held]
        try:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(send,),
                start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            os.close(receive)
            raise IsolationError(_advice(f"{error.filename} is not installed")) from None
        finally:
            os.close(send)
        try:
            first = _first_process(process, receive)
            yield _running(process, first, f"bubblewrap; {limit}; {DISK_BYTES >> 20} MiB for what it writes")
        finally:
            process.kill()
            process.wait()


def _advice(reason: str) -> str:
    remedy = ALLOW if shutil.which("bwrap") else INSTALL
    return f"no sandbox: {reason}. {remedy}. For code of your own: --trusted"


def _bubblewrap(folders: Folders, etc: Path, threads: int, info: int) -> list[str]:
    """The sandbox's command line up to the command. Later arguments mount over earlier ones."""
    (etc / "hosts").write_text("127.0.0.1 localhost worker\n")
    (etc / "passwd").write_text("nobody:x:65534:65534:nobody:/tmp:/bin/sh\n")
    if (libraries := Path("/etc/ld.so.cache")).exists():
        shutil.copy(libraries, etc)
    line = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    line += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "worker", "--clearenv"]
    for name, value in environment(INSIDE, "/tmp", threads).items():
        line += ["--setenv", name, value]
    line += ["--ro-bind", "/usr", "/usr", "--ro-bind", str(etc), "/etc", "--proc", "/proc", "--dev", "/dev"]
    for name in ("bin", "sbin", "lib", "lib64"):
        root = Path("/", name)
        line += (
            ["--symlink", f"usr/{name}", str(root)] if root.is_symlink() else ["--ro-bind-try", str(root), str(root)]
        )
    for device in sorted(Path("/dev").glob("nvidia*")):
        line += ["--dev-bind", str(device), str(device)]
    for place in (Path("/tmp"), Path("/dev/shm"), INSIDE.output, INSIDE.observe, ENDED):
        line += ["--size", str(DISK_BYTES), "--tmpfs", str(place)]
    for place in (sys.base_prefix, sys.prefix, Path(cifar.__file__).parent, HOOKS):  # also where they lie in /tmp
        line += ["--ro-bind", str(place), str(place)]
    line += ["--ro-bind", str(folders.source), str(INSIDE.source), "--ro-bind", str(folders.data), str(INSIDE.data)]
    # A grader that runs as root is root for the files of /proc, whatever it is called inside: none may be written.
    line += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(INSIDE.source)]
    return [*line, "--info-fd", str(info), "--"]


def _first_process(process: subprocess.Popen, receive: int) -> int:
    """The id of the sandbox's first process, once everything is mounted; IsolationError if that fails."""
    with os.fdopen(receive) as file:
        told = file.read()
    if told:
        first = json.loads(told)["child-pid"]
        mounted = Path(f"/proc/{first}/root", ENDED.relative_to("/"))
        while process.poll() is None:
            if mounted.is_dir():
                return first
            time.sleep(0.01)
    said = process.stdout.read().decode(errors="replace").strip().splitlines() or ["bubblewrap did not start"]
    raise IsolationError(_advice(said[-1]))


def _running(process: subprocess.Popen, first: int, isolation: str) -> Running:
    """What can be seen of the sandbox from outside, by way of its first process."""
    root = Path(f"/proc/{first}/root")
    view = Folders(root / INSIDE.root.relative_to("/"))

    def status() -> int | None:
        if process.poll() is not None:
            return process.returncode or 1  # the holder never leaves by itself
        with contextlib.suppress(untrusted.UnreadableError, ValueError):
            return int(untrusted.read(root / ENDED.relative_to("/") / "status", most=8))
        return None

    def loopback_bytes() -> int | None:
        if _gpus_exchange():
            return None
        with contextlib.suppress(OSError):  # the sandbox may have ended
            lines = Path(f"/proc/{first}/net/dev").read_text().splitlines()
            return next(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))
        return 0

    return Running(process, view, status, lambda: descendants(first), loopback_bytes, isolation)
