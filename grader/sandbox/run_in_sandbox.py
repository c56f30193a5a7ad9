"""Runs a short program in isolation on a learner's work. It brings back one file of limited size."""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from cifar.support.environment import cores
from grader.common import text, untrusted
from grader.sandbox.isolation import Isolation
from grader.sandbox.run_paths import RunPaths

PROGRAM = "main.py"
ANSWER, LOG = "answer", "log"  # a program leaves these files in its output folder
POLL_SECONDS = 0.02  # seconds; the end of the program is noticed so soon
MAX_LOG_BYTES = 4096  # bytes at the end of what the program printed; only the last line is shown


class NoAnswerError(Exception):
    """The program gave no answer. The message is one line. It may hold the learner's own words."""


def answer(
    source: Mapping[str, bytes], data: Mapping[str, bytes], max_bytes: int, seconds: float, isolation: type[Isolation]
) -> bytes:
    """Run `source["main.py"]` and return the content of the file that it writes.

    The program gets two arguments: the folder of `data`, and the path of the file to write. The file may have at most
    `max_bytes`. Raises NoAnswerError if the program takes longer than `seconds`, fails, or leaves no such file.
    """
    with tempfile.TemporaryDirectory(prefix="grader-box-") as root:
        paths = RunPaths(Path(root))
        for folder in paths.parts:
            folder.mkdir()
        for folder, files in {paths.source: source, paths.data: data}.items():
            for name, content in files.items():
                (folder / name).write_bytes(content)
        with isolation(paths, threads=cores()) as isolated:
            isolated.start(_command(isolated.inside))
            deadline = time.monotonic() + seconds
            while (status := isolated.poll()) is None and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            return _result(isolated.written, status, max_bytes, seconds)


def _command(inside: RunPaths) -> list[str]:
    log = inside.output / LOG  # the folder is limited in size, and nobody has to empty a pipe
    script = f'exec python {PROGRAM} "$0" "$1" > {log} 2>&1'
    return ["sh", "-c", script, str(inside.data), str(inside.output / ANSWER)]


def _result(written: RunPaths, status: int | None, max_bytes: int, seconds: float) -> bytes:
    if status is None:
        raise NoAnswerError(f"no answer within {seconds:.0f} s")
    if status != 0:
        raise NoAnswerError(_last_words(written) or f"it ended with status {status}")
    try:
        return untrusted.read(written.output / ANSWER, max_bytes)
    except untrusted.UnreadableError as error:
        raise NoAnswerError(str(error)) from None


def _last_words(written: RunPaths) -> str:
    try:
        lines = untrusted.read(written.output / LOG, MAX_LOG_BYTES, tail=True).decode(errors="replace").split("\n")
    except untrusted.UnreadableError:
        return ""
    return next((text.one_line(line.strip(), 300) for line in reversed(lines) if line.strip()), "")
