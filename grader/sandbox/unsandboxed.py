"""Runs your own command as you. It isolates the command from nothing."""

import contextlib
import subprocess
import tempfile
import time

import psutil

from cifar.support import process_tree
from grader.sandbox.isolation import Isolation, environment, gpus_exchange


class Unsandboxed(Isolation):
    """Runs a command as you. At the end it looks for the command's processes and kills them."""

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
        """Return the bytes of all programs on this machine together. The command's own bytes cannot be told apart."""
        return None if gpus_exchange() else _machine_loopback_bytes() - self.sent_before


def _machine_loopback_bytes() -> int:
    """Return how many bytes all programs together have sent over the machine's loopback."""
    counters = psutil.net_io_counters(pernic=True, nowrap=False)
    return sum(counters[name].bytes_sent for name in ("lo", "lo0") if name in counters)


def _kill_family(process: subprocess.Popen, observe: str) -> None:
    """Kill a process and its descendants.

    A process may have left the family, so all processes with the run's environment are killed too.
    """
    for attempt in range(10):  # a process may start another one, and a process that just starts shows no environment
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
