"""Runs a command of one's own as oneself, isolated from nothing."""

import contextlib
import subprocess
import tempfile
import time

import psutil

from cifar.support import process_tree
from grader.sandbox.isolation import Isolation, environment, gpus_exchange


class Unsandboxed(Isolation):
    """Runs a command as oneself. At the end its processes are looked for and killed."""

    description = "none: it ran as you, with your files and network"

    def start(self, command: list[str]) -> None:
        home = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="grader-home-"))
        self.sent_before = _machine_loopback_bytes()
        self.process = subprocess.Popen(
            command, cwd=self.paths.source, env=environment(self.paths, home, self.threads),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._cleanup.callback(_kill_family, self.process, str(self.paths.observe))

    def poll(self) -> int | None:
        return self.process.poll()

    def processes(self) -> list[psutil.Process]:
        return process_tree.descendants(self.process.pid)

    def loopback_bytes(self) -> int | None:
        """Bytes of all programs on this machine together."""
        return None if gpus_exchange() else _machine_loopback_bytes() - self.sent_before


def _machine_loopback_bytes() -> int:
    """Bytes that all programs together have sent over the machine's loopback."""
    counters = psutil.net_io_counters(pernic=True, nowrap=False)
    return sum(counters[name].bytes_sent for name in ("lo", "lo0") if name in counters)


def _kill_family(process: subprocess.Popen, observe: str) -> None:
    """Kill a process's descendants, and all that carry its environment: helpers may have left the family."""
    for attempt in range(10):  # they may be starting others, and what just starts shows no environment
        family = process_tree.descendants(process.pid)
        for other in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if other.pid != process.pid and other.environ().get("GRADER_OBSERVE") == observe:
                    family.append(other)
        if attempt and not family:
            break
        process_tree.kill(family, seconds=1)
        time.sleep(0.05)
    process.kill()
    process.wait()
