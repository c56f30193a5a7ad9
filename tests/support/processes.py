"""Looks for processes on this machine."""

import psutil


def alive(mark: str) -> bool:
    """Whether a process has `mark` in its command line."""
    return any(mark in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
