"""Runs a command in a bubblewrap sandbox.

The command can use no network except its own loopback. Its root is read-only and holds little more than Python. It has
its own process ids and no privileges, and it starts with a small environment that the grader chooses. Its memory and
its number of processes are limited. It can write only to folders that lie in memory and are limited in size. Nothing
of the command remains after its end, even if the grader is killed.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

import cifar
from cifar.support.process_tree import descendants
from grader.common import untrusted
from grader.sandbox import resource_limits
from grader.sandbox.isolation import Isolation, IsolationError, environment, gpus_exchange
from grader.sandbox.run_paths import HOOKS, RunPaths

INSIDE = RunPaths(Path("/submission"))
INSTALL = "On Debian: sudo apt-get install bubblewrap"
ALLOW = (
    "It is installed, but this machine or container forbids namespaces: see docs/container.md in the course's "
    "repository, and the kernel's setting kernel.apparmor_restrict_unprivileged_userns"
)
# The exit status is written to this folder. It has its own space, which the output of the run does not use up.
ENDED = INSIDE.root / "ended"
# This script runs the command and then sleeps. The sandbox's folders lie in memory and are lost with its last process.
KEEP_FOLDERS = f'"$@"; echo $? > {ENDED}/status; exec sleep infinity'
# bytes; each folder that the run can write to may hold so many, because these folders use the machine's memory
DISK_BYTES = 64 * 2**20


class Bubblewrap(Isolation):
    """Isolates code that nobody trusts, as the module's docstring says."""

    def __init__(self, paths: RunPaths, threads: int):
        super().__init__(paths, threads)
        self.inside = INSIDE

    def start(self, command: list[str]) -> None:
        etc = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="grader-etc-")))
        limiting, limits = self._cleanup.enter_context(resource_limits.limited())
        self.description = f"bubblewrap; {limits}; {DISK_BYTES >> 20} MiB for what it writes"
        receive, send = os.pipe()
        blocked, begin = os.pipe()
        held = ["sh", "-c", KEEP_FOLDERS, "keep-folders", *command]
        line = [*limiting, *_bubblewrap(self.paths, etc, self.threads, send, blocked), *held]
        try:
            self.process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                pass_fds=(send, blocked), start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            os.close(receive)
            os.close(begin)
            raise IsolationError(_advice(f"{error.filename} is not installed")) from None
        finally:
            os.close(send)
            os.close(blocked)
        self._cleanup.callback(self._kill)
        # The command begins only now. Otherwise it could end, with the whole sandbox, before the grader has looked.
        with os.fdopen(begin, "wb", buffering=0) as go_on:
            self.first = _first_process(self.process, receive)
            go_on.write(b"1")
        self.root = Path(f"/proc/{self.first}/root")
        self.written = RunPaths(self.root / INSIDE.root.relative_to("/"))

    def poll(self) -> int | None:
        if self.process.poll() is not None:
            return self.process.returncode or 1  # KEEP_FOLDERS never ends by itself
        with contextlib.suppress(untrusted.UnreadableError, ValueError):
            return int(untrusted.read(self.root / ENDED.relative_to("/") / "status", max_bytes=8))
        return None

    def processes(self) -> list[psutil.Process]:
        return descendants(self.first)

    def loopback_bytes(self) -> int | None:
        if gpus_exchange():
            return None
        with contextlib.suppress(OSError):  # the sandbox may have ended
            lines = Path(f"/proc/{self.first}/net/dev").read_text().splitlines()
            return next(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))
        return 0

    def _kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _advice(reason: str) -> str:
    remedy = ALLOW if shutil.which("bwrap") else INSTALL
    return f"no sandbox: {reason}. {remedy}. For code of your own: --no-sandbox"


def _bubblewrap(paths: RunPaths, etc: Path, threads: int, info: int, blocked: int) -> list[str]:
    """Return the sandbox's command line up to the command. Later arguments mount over earlier ones.

    The sandbox writes about itself to the file descriptor `info`. It begins the command once it can read `blocked`.
    """
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
    for path in (Path("/tmp"), Path("/dev/shm"), INSIDE.output, INSIDE.observe, ENDED):
        line += ["--size", str(DISK_BYTES), "--tmpfs", str(path)]
    # These folders may lie in /tmp, so they are mounted after it.
    for path in (sys.base_prefix, sys.prefix, Path(cifar.__file__).parent, HOOKS):
        line += ["--ro-bind", str(path), str(path)]
    for path, inside in (
        (paths.source, INSIDE.source), (paths.data, INSIDE.data), (paths.challenges, INSIDE.challenges),
    ):  # fmt: skip
        line += ["--ro-bind", str(path), str(inside)]
    # If the grader runs as root, the command counts as root for the files of /proc, even under another user id. The
    # command must not write to these files.
    line += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(INSIDE.source)]
    return [*line, "--info-fd", str(info), "--block-fd", str(blocked), "--"]


def _first_process(process: subprocess.Popen, receive: int) -> int:
    """Return the id of the sandbox's first process, once everything is mounted. Raises IsolationError if that fails."""
    with os.fdopen(receive) as file:
        info = file.read()
    if info:
        first = json.loads(info)["child-pid"]
        mounted = Path(f"/proc/{first}/root", ENDED.relative_to("/"))
        while process.poll() is None:
            if mounted.is_dir():
                return first
            time.sleep(0.01)
    errors = process.stdout.read().decode(errors="replace").strip().splitlines() or ["bubblewrap did not start"]
    raise IsolationError(_advice(errors[-1]))
