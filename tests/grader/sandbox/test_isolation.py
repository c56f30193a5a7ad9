"""Small commands try the sandbox: they cannot reach or use up what they should not, and they leave nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.common import untrusted
from grader.sandbox import bubblewrap, resource_limits
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.isolation import IsolationError
from grader.sandbox.run_paths import RunPaths
from grader.sandbox.unsandboxed import Unsandboxed
from tests.conftest import REPOSITORY, until
from tests.support.processes import alive


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    made = RunPaths(tmp_path / "run")
    for folder in made.parts:
        folder.mkdir(parents=True)
    return made


@pytest.fixture
def inside(paths: RunPaths) -> Callable[[str], tuple[int, str]]:
    """Run a shell script in the sandbox. Return its exit status and the text that it wrote into output/said."""

    def run(script: str, patience: float = 30) -> tuple[int, str]:
        command = ["sh", "-c", f"exec > /submission/output/said 2>&1; {script}"]
        with Bubblewrap(paths, threads=1) as isolated:
            isolated.start(command)
            deadline = time.monotonic() + patience
            while (status := isolated.poll()) is None and time.monotonic() < deadline:
                time.sleep(0.02)
            said = untrusted.read(isolated.written.output / "said", 100_000).decode()
        return status, said

    return run


def groups(owner: int) -> list[Path]:
    """Return the control groups of one grader. Another grader may run at the same time as the tests."""
    name = f"course-{owner}-*"
    return [*resource_limits.ROOT.glob(name), *resource_limits.ROOT.glob(f"*/{name}")]


def test_an_exit_status_comes_out(inside):
    assert inside("echo hello; exit 7") == (7, "hello\n")


def test_it_is_nobody_without_privileges_and_cannot_make_a_sandbox_of_its_own(inside):
    _, said = inside("id -u; grep CapEff /proc/self/status; grep CapBnd /proc/self/status; unshare -U true || echo no")
    assert said.splitlines()[:3] == ["65534", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"]
    assert said.endswith("no\n")


def test_nothing_of_the_machine_is_there_but_python_and_the_course(inside, paths: RunPaths):
    (paths.data / "manifest.json").write_text("{}")
    _, said = inside(f"ls /submission/data; ls -A {REPOSITORY} /etc /home; ls {Path.home()}/.cache; cat /etc/shadow")
    assert said.startswith("manifest.json")
    assert "/etc/shadow: No such file" in said and ".cache': No such file" in said
    for hidden in ("solutions", "tests", "Makefile", ".git", "ssh"):
        assert hidden not in said


def test_solutions_and_the_grader_cannot_be_imported_or_read(inside):
    python = sys.executable
    status, said = inside(
        f"{python} -c 'import cifar; print(cifar.__file__)'; {python} -c 'import grader.grading.rubric'"
    )
    assert status == 1
    assert "cifar/__init__.py" in said and "ModuleNotFoundError" in said


def test_its_world_is_read_only(inside, paths: RunPaths):
    (paths.source / "train.py").write_text("")
    places = f"/x /etc/x /usr/x /dev/x /submission/x /submission/source/train.py /submission/data/x {sys.prefix}/x"
    _, said = inside(f"for place in {places}; do touch $place && echo WROTE $place; done")
    assert "WROTE" not in said
    assert said.count("Read-only file system") == 8


def test_the_kernels_settings_cannot_be_opened_for_writing_though_the_grader_may_be_root(inside):
    settings = "sys/kernel/core_pattern sys/vm/overcommit_memory sysrq-trigger 1/oom_score_adj self/comm"
    _, said = inside(f"for name in {settings}; do (: >> /proc/$name) && echo WROTE $name; done")
    assert "WROTE" not in said
    assert said.count("cannot create /proc/") == 5


def test_there_is_no_network_but_its_own_loopback(inside):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _, said = inside(f"{sys.executable} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'")
    assert "ConnectionRefusedError" in said
    assert "lo" in (interfaces := inside("ls /proc/sys/net/ipv4/conf")[1]) and "eth" not in interfaces


def test_its_environment_holds_what_it_needs_and_nothing_of_ours(inside, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do not tell")
    _, said = inside("env")
    names = {line.split("=")[0] for line in said.splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "PATH", "HOME", "TMPDIR", "LANG", "OMP_NUM_THREADS", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH", "GRADER_OBSERVE", "HOROVOD_TIMELINE", "OMP_WAIT_POLICY",
        "HOROVOD_GLOO_TIMEOUT_SECONDS",
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS",
    }  # fmt: skip


def test_a_full_disk_is_its_own(inside):
    for place in ("/tmp", "/dev/shm", "/submission/observe"):
        _, said = inside(f"head -c 200M /dev/zero > {place}/big; stat -c %s {place}/big")
        assert "No space left on device" in said
        assert int(said.split()[-1]) <= bubblewrap.DISK_BYTES


@pytest.mark.skipif(
    not os.access(resource_limits.ROOT / "pids", os.W_OK), reason="needs control groups that can be written"
)
def test_memory_is_limited(inside, monkeypatch):
    monkeypatch.setattr(resource_limits, "MAX_MEMORY_BYTES", 100 * 2**20)
    status, _ = inside(f"{sys.executable} -c 'b = bytearray(300 << 20)'")
    assert status == 137
    assert groups(os.getpid()) == []


@pytest.mark.skipif(
    not os.access(resource_limits.ROOT / "cpuset", os.W_OK), reason="needs control groups that can be written"
)
def test_no_other_cores_are_used_than_the_grader_may_use(inside, monkeypatch):
    monkeypatch.setattr(resource_limits, "_my_cores", lambda: "0")
    program = "import os; os.sched_setaffinity(0, range(os.cpu_count())); print(os.sched_getaffinity(0))"
    _, said = inside(f"{sys.executable} -c '{program}'")
    assert said == "{0}\n"


@pytest.mark.skipif(
    not os.access(resource_limits.ROOT / "pids", os.W_OK), reason="needs control groups that can be written"
)
def test_a_fork_bomb_reaches_its_limit_and_is_gone(inside, paths: RunPaths, monkeypatch):
    monkeypatch.setattr(resource_limits, "MAX_PROCESSES", 40)
    (paths.source / "bomb.py").write_text(
        "import os, time\ntry:\n    while True:\n        if not os.fork():\n            time.sleep(600)\n"
        "except OSError:\n    print('limit')\n"
    )
    status, said = inside(f"{sys.executable} bomb.py")
    assert (status, said) == (0, "limit\n")
    assert groups(os.getpid()) == []


def forgotten(grader: int) -> bool:
    """Return whether the start of another grader has removed the control groups of a killed one."""
    with resource_limits.limited():
        return groups(grader) == []


@pytest.mark.skipif(
    not os.access(resource_limits.ROOT / "pids", os.W_OK), reason="needs control groups that can be written"
)
def test_a_grader_with_another_list_of_processes_leaves_our_group_until_it_is_old():
    """Two containers, or two hosts on one machine, see the same groups, but not each other's processes."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c"]
    program = "from grader.sandbox import resource_limits\n{}\nwith resource_limits.limited(): pass"
    with resource_limits.limited():
        mine = groups(os.getpid())
        subprocess.run([*apart, program.format("")], check=True)
        assert mine and groups(os.getpid()) == mine
        subprocess.run([*apart, program.format("resource_limits.OLD_SECONDS = -1")], check=True)
        assert groups(os.getpid()) == []


def test_a_command_that_ends_at_once_is_seen_even_if_the_grader_looks_late(paths: RunPaths, monkeypatch):
    found = bubblewrap._first_process

    def late(*given: object) -> int:
        time.sleep(0.5)
        return found(*given)

    monkeypatch.setattr(bubblewrap, "_first_process", late)
    with Bubblewrap(paths, threads=1) as isolated:
        isolated.start(["sh", "-c", "kill -9 -1"])  # this also ends the process that keeps the sandbox
        until(lambda: isolated.poll() is not None)


def test_a_daemon_does_not_survive(inside):
    status, _ = inside("setsid sh -c 'setsid sleep 86397 &' & sleep 0.2")
    assert status == 0
    until(lambda: not alive("sleep 86397"), seconds=10)


def test_a_killed_grader_leaves_nothing_running(paths: RunPaths):
    program = (
        "import time, pathlib, grader.sandbox.run_paths\n"
        "from grader.sandbox.bubblewrap import Bubblewrap\n"
        f"paths = grader.sandbox.run_paths.RunPaths(pathlib.Path({str(paths.root)!r}))\n"
        "with Bubblewrap(paths, 1) as isolated: isolated.start(['sleep', '86396']); print('up'); time.sleep(60)"
    )
    env = os.environ | {"TMPDIR": str(paths.root)}
    grader = subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, cwd=REPOSITORY, env=env)
    assert grader.stdout.readline() == b"up\n"
    time.sleep(0.3)
    assert alive("sleep 86396")
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    until(lambda: not alive("sleep 86396"), seconds=10)
    # The groups can be removed only a moment after their last process has ended.
    until(lambda: forgotten(grader.pid), seconds=30)


def test_links_pipes_and_large_files_are_not_followed_waited_for_or_swallowed(inside, paths: RunPaths):
    script = "cd /submission/output; ln -s /etc/passwd link; mkfifo pipe; mkdir folder; head -c 1000 /dev/zero > large"
    command = ["sh", "-c", script]
    with Bubblewrap(paths, threads=1) as isolated:
        isolated.start(command)
        while isolated.poll() is None:
            time.sleep(0.02)
        output = isolated.written.output
        for name, message in {
            "link": "was not written",
            "pipe": "is not a regular file",
            "folder": "is not a regular file",
            "large": "holds more than 999 bytes",
            "nothing": "was not written",
        }.items():
            with pytest.raises(untrusted.UnreadableError, match=f"{name} {message}"):
                untrusted.read(output / name, max_bytes=999)
        assert len(untrusted.read(output / "large", max_bytes=10, tail=True)) == 10


def test_without_bubblewrap_one_line_names_the_command(paths: RunPaths, tmp_path: Path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "prlimit", "choom"):
        (tmp_path / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with (
        pytest.raises(IsolationError, match="sudo apt-get install bubblewrap") as refused,
        Bubblewrap(paths, threads=1) as isolated,
    ):
        isolated.start(["true"])
    assert "\n" not in str(refused.value)


def test_where_namespaces_are_forbidden_one_line_says_so(paths: RunPaths, tmp_path: Path, monkeypatch):
    forbidden = tmp_path / "bwrap"
    forbidden.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    forbidden.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with (
        pytest.raises(IsolationError, match=r"No permissions to create .* forbids namespaces") as refused,
        Bubblewrap(paths, threads=1) as isolated,
    ):
        isolated.start(["true"])
    assert "\n" not in str(refused.value) and "apt-get" not in str(refused.value)


def test_without_control_groups_resource_limits_take_their_place(inside, monkeypatch):
    monkeypatch.setattr(resource_limits, "ROOT", Path("/nonexistent"))
    with resource_limits.limited() as (prefix, told):
        assert "--nproc=" in prefix[-1] and told.startswith("resource limits")
    assert inside("ulimit -d; exit 3")[0] == 3


def test_ones_own_code_runs_as_oneself_and_leaves_nothing(paths: RunPaths):
    with Unsandboxed(paths, threads=1) as isolated:
        isolated.start(["sh", "-c", f"setsid sleep 86395 & echo $HOME > {isolated.inside.output}/said"])
        while isolated.poll() is None:
            time.sleep(0.02)
        assert (paths.output / "said").read_text().startswith("/")
        assert isolated.written == paths
    until(lambda: not alive("sleep 86395"), seconds=10)
