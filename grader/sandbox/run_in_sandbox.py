"""Runs a short program over something a learner made, isolated, and brings back one file of a known size at most."""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from cifar.support.environment import cores
from grader.common import untrusted
from grader.sandbox.isolation import Isolation, Running
from grader.sandbox.run_paths import Folders

PROGRAM = "main.py"


class BoxError(Exception):
    """The program gave no answer; the message is one line, and may hold the learner's own words."""


def answer(
    source: Mapping[str, bytes], data: Mapping[str, bytes], most: int, seconds: float, isolate: Isolation
) -> bytes:
    """Run `source["main.py"]` with two arguments: the folder of `data`, and the path of the file to write.

    `isolate` is isolation.sandbox, or isolation.trusted for one's own code. Returns the content of the file, at most
    `most` bytes. Raises BoxError if it takes longer than `seconds`, fails, or leaves no such file.
    """
    with tempfile.TemporaryDirectory(prefix="grader-box-") as root:
        folders = Folders(Path(root))
        for folder, files in {
            folders.source: source,
            folders.data: data,
            folders.output: {},
            folders.observe: {},
        }.items():
            folder.mkdir()
            for name, content in files.items():
                (folder / name).write_bytes(content)
        with isolate(_command, folders, cores()) as running:
            deadline = time.monotonic() + seconds
            while (status := running.status()) is None and time.monotonic() < deadline:
                time.sleep(0.02)
            return _result(running, status, most, seconds)


def _command(inside: Folders) -> list[str]:
    log = inside.output / "log"  # the output goes to a bounded folder: nobody has to drain a pipe
    script = f'exec python {PROGRAM} "$0" "$1" > {log} 2>&1'
    return ["sh", "-c", script, str(inside.data), str(inside.output / "answer")]


def _result(running: Running, status: int | None, most: int, seconds: float) -> bytes:
    if status is None:
        raise BoxError(f"no answer within {seconds:.0f} s")
    if status != 0:
        raise BoxError(_last_words(running.folders) or f"it ended with status {status}")
    try:
        return untrusted.read(running.folders.output / "answer", most)
    except untrusted.UnreadableError as error:
        raise BoxError(str(error)) from None


def _last_words(folders: Folders) -> str:
    try:
        lines = untrusted.read(folders.output / "log", 4096, tail=True).decode(errors="replace").split("\n")
    except untrusted.UnreadableError:
        return ""
    return next((untrusted.printable(line.strip())[:300] for line in reversed(lines) if line.strip()), "")
