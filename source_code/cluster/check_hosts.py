"""Checks, before a run starts, that all its hosts answer and have the same Python, libraries, program and data.

It works on any hosts that ssh reaches, and not only on those of `python -m cluster up`.
"""

import contextlib
import json
import shlex
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ANSWER_SECONDS = 10  # for one question; a host that misses two of them is taken for one that is away
NOT_CONNECTED = 255  # ssh's own exit status if it did not reach the host
CHECK_SECONDS = 60  # A host may need this long to load PyTorch and to read the data.

# This program runs on each host. It prints what must be the same on all hosts. Its arguments are paths.
PROBE = """
import hashlib, importlib.metadata as metadata, json, pathlib, platform, sys
found = {"Python": platform.python_version()}
for name in ("torch", "horovod", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found[name] = "not installed"
for path in map(pathlib.Path, sys.argv[1:]):
    files = sorted(path.glob("*.bin")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.is_file() else b"")
    found[str(path)] = digest.hexdigest()[:12] if path.exists() else "not there"
print(json.dumps(found))
"""


def problems(hosts: list[str], paths: list[Path]) -> list[str]:
    """Return one line for each host that cannot take part: the host, what is wrong, and what to do.

    `paths` are files and folders with data that must be the same everywhere. What this host has counts as right.
    """
    probe = [sys.executable, "-c", PROBE, *map(str, paths)]
    here = json.loads(subprocess.run(probe, capture_output=True, text=True, check=True).stdout)
    others = [host for host in hosts if not is_here(host)]
    with ThreadPoolExecutor(len(others) or 1) as pool:
        return [line for line in pool.map(lambda host: _problem(host, probe, here), others) if line]


def is_here(host: str) -> bool:
    """Return whether a name is this host's own. Horovod does not use ssh for its own host either."""
    return host in ("localhost", "127.0.0.1", socket.gethostname())


def unreachable(host: str) -> str:
    """Return why a host does not answer by ssh, or an empty text if it answers."""
    if is_here(host):
        return ""
    try:
        done = _first_answer(host)
    except subprocess.TimeoutExpired:
        return f"{host} does not answer within {2 * ANSWER_SECONDS} s. Is it on, and is its cable in?"
    if done.returncode == 0:
        return ""
    told = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"ssh ended with {done.returncode}"
    if "resolve" in told or "not known" in told:
        return f"there is no host {host} ({told}). Look for a spelling mistake, or add it to /etc/hosts"
    if "Permission denied" in told:
        return f"{host} refuses your key ({told}). Give it your public key: ssh-copy-id {host}"
    if "IDENTIFICATION HAS CHANGED" in done.stderr:
        return f"{host} shows another host key than before. Ask who runs it before you log in"
    if "Host key" in told:
        return f"nobody has logged in to {host} from here before. Do it once, to accept its key: ssh {host}"
    return f"{host} does not answer ({told}). Is it on, and does an ssh server run there?"


def _problem(host: str, probe: list[str], here: dict[str, str]) -> str:
    if away := unreachable(host):
        return away
    try:
        done = _ssh(host, probe, CHECK_SECONDS)
    except subprocess.TimeoutExpired:
        return f"{host} has not read the program and the data within {CHECK_SECONDS} s. Is its disk very slow?"
    if done.returncode != 0:
        told = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        return f"{host} cannot run {probe[0]} ({told}). Install the course there in the same folder"
    there = json.loads(done.stdout.splitlines()[-1])
    for name, value in here.items():
        if there[name] != value:
            return f"{host} has another {name} than this host: {there[name]} there, {value} here. Make them the same"
    return ""


def _first_answer(host: str) -> subprocess.CompletedProcess:
    """Ask a host for a sign of life. A host that is busy may miss the first question, so it is asked again."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = _ssh(host, ["true"], ANSWER_SECONDS)
        if done.returncode != NOT_CONNECTED:
            return done
    return _ssh(host, ["true"], ANSWER_SECONDS)


def _ssh(host: str, command: list[str], seconds: float) -> subprocess.CompletedProcess:
    line = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={ANSWER_SECONDS // 2}", host, shlex.join(command)]
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=seconds)
