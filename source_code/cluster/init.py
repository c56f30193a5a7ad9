"""This is the first process of a set of namespaces. It runs as a file, because only the standard library is needed.

When this process ends, the kernel kills all processes in the namespaces, and their network cards, mounts and names
vanish.

Usage: init.py HOST_NAME CLUSTER LIFE

CLUSTER only marks the process in the list of processes. With the LIFE `tied`, the process ends when its standard input
ends. The writing end of this input belongs to the program that started the cluster, so nothing is left even if that
program is killed. With the LIFE `free`, the process runs until it is killed.
"""

import os
import select
import signal
import socket
import sys


def main() -> None:
    """Name the host, say `ready`, and then reap processes that have lost their parents."""
    name, _, life = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # An interrupt from the terminal is for the program that started us.
    socket.sethostname(name)
    print("ready", flush=True)
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write_end)  # The kernel's signals wake `select`.
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    watched = [0, read_end] if life == "tied" else [read_end]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready and not os.read(0, 1024):
            return
        if read_end in ready:
            os.read(read_end, 1024)
            reap()


def reap() -> None:
    """Take the exit statuses of all children that have ended."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


if __name__ == "__main__":
    main()
