"""From a bare machine to a working course: system packages, .venv, the locked dependencies, Horovod.

    python3 source_code/install/install.py

Needs only Python's standard library. Done steps are not repeated; an interrupted one starts again. Downloads and the
Horovod wheel are kept in the user's cache folder, so that a second clone takes a minute.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
VENV = REPOSITORY / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "course-installed.json"
REQUIREMENTS = REPOSITORY / "requirements.txt"
PATCH = HERE / "horovod-0.28.1.patch"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "horovod-course"

SANDBOX = "bubblewrap"
HOROVOD = "horovod==0.28.1"
HOROVOD_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
BUILD_FLAGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
}


def stop(message: str) -> None:
    """End with one line that says what is wrong and what to do."""
    sys.exit(f"install: {message}")


def say(message: str) -> None:
    print(f"install: {message}", flush=True)


def missing_packages() -> list[str]:
    """Debian packages of what is missing on this machine: Horovod's compiler and helpers, the grader's sandbox."""
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    try:
        import ensurepip  # noqa: F401  Debian ships venv's pip apart
    except ImportError:
        has_venv = False
    else:
        has_venv = True
    present = {
        "g++": shutil.which("g++"),
        "make": shutil.which("make"),
        "patch": shutil.which("patch"),
        SANDBOX: shutil.which("bwrap"),
        "python3-dev": headers.is_file(),
        "python3-venv": has_venv,
    }
    return [package for package, there in present.items() if not there]


def system_packages() -> None:
    """Install what is missing where that is possible, else name the command; only the sandbox can be done without."""
    if not (missing := missing_packages()):
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if shutil.which("apt-get") and os.geteuid() == 0:
        say(f"installing system packages: {' '.join(missing)}")
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(command, check=False)
        missing = missing_packages()
    told = f"missing: {', '.join(missing)}. On Debian or Ubuntu: sudo {' '.join(command)}"
    if set(missing) - {SANDBOX}:
        stop(told)
    if missing:
        say(f"{told} (without it the grader runs a submission only with --trusted)")


def virtual_environment() -> None:
    """Make .venv if there is none that works."""
    check = [PYTHON, "-m", "pip", "--version"]
    if PYTHON.exists() and subprocess.run(check, capture_output=True, check=False).returncode == 0:
        return
    say(f"making a virtual environment in {VENV}")
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)


def pip(*arguments: str | Path) -> None:
    """Run the environment's pip, its progress bars shown; end with one line if it fails."""
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, check=False).returncode != 0:
        stop(f"pip failed (see above). To try again: {sys.executable} {Path(__file__).relative_to(REPOSITORY)}")


def build_flags() -> dict[str, str]:
    """Horovod's build flags for this machine: with CUDA where PyTorch has it and a compiler for it is there."""
    probe = "import json, torch; print(json.dumps([torch.version.cuda, torch.cuda.device_count()]))"
    cuda, gpus = json.loads(subprocess.check_output([PYTHON, "-c", probe], text=True))
    if not (cuda and gpus and shutil.which("nvcc")):
        return BUILD_FLAGS
    if gpus == 1:
        # NCCL refuses two workers on one GPU, so their gradients go over Gloo; this keeps the CUDA events that tell
        # Horovod when a gradient is ready.
        return BUILD_FLAGS | {"HOROVOD_GPU": "CUDA", "HOROVOD_GPU_ALLGATHER": "NCCL"}
    return BUILD_FLAGS | {"HOROVOD_GPU": "CUDA", "HOROVOD_GPU_OPERATIONS": "NCCL"}


def wheel_folder(flags: dict[str, str]) -> Path:
    """Where the cache keeps the wheel that fits this Python, this PyTorch, our patch and these flags."""
    probe = "import sys, torch; print(sys.implementation.cache_tag, torch.__version__)"
    versions = subprocess.check_output([PYTHON, "-c", probe], text=True).strip()
    key = json.dumps([HOROVOD, versions, PATCH.read_text(), flags, os.uname().machine])
    return CACHE / "wheels" / hashlib.sha256(key.encode()).hexdigest()[:16]


def horovod_wheel() -> Path:
    """The Horovod wheel: from the cache, or built into it (two to four minutes on two cores)."""
    flags = build_flags()
    target = wheel_folder(flags)
    if not list(target.glob("*.whl")):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix=".building-") as scratch:
            built = build_wheel(Path(scratch), flags)
            target.mkdir(parents=True, exist_ok=True)
            built.replace(target / built.name)
    return next(target.glob("*.whl"))


def build_wheel(scratch: Path, flags: dict[str, str]) -> Path:
    """Download, check, patch and compile Horovod in `scratch`; returns the wheel."""
    say(f"downloading the source of {HOROVOD}")
    pip("download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", scratch, HOROVOD)
    archive = next(scratch.glob("*.tar.gz"))
    if hashlib.sha256(archive.read_bytes()).hexdigest() != HOROVOD_SHA256:
        stop(f"the download of {HOROVOD} is not the file that the course was written for (SHA-256 differs); try again")
    shutil.unpack_archive(archive, scratch, filter="data")
    source = scratch / archive.name.removesuffix(".tar.gz")
    subprocess.run(["patch", "--strip=1", "--quiet", f"--input={PATCH}"], cwd=source, check=True)
    command = [PYTHON, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", scratch / "wheel", source]
    path = os.pathsep.join([str(PYTHON.parent), os.environ["PATH"]])  # the environment's CMake comes first
    compile_with_progress(command, os.environ | flags | {"PATH": path})
    return next((scratch / "wheel").glob("*.whl"))


def compile_with_progress(command: list, environment: dict[str, str]) -> None:
    """Run the build, showing CMake's percentage; keep its output, and show the end of it if it fails."""
    log = CACHE / "horovod-build.log"
    started, shown, steps = time.monotonic(), -1, 1 if sys.stdout.isatty() else 20
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with process, log.open("w") as file:
        for line in process.stdout:
            file.write(line)
            percent = re.match(r"\s*\[\s*(\d+)%\]", line)
            if percent and int(percent[1]) // steps > shown:
                shown = int(percent[1]) // steps
                end = "\r" if sys.stdout.isatty() else "\n"
                print(
                    f"install: compiling Horovod, {percent[1]} %, {time.monotonic() - started:.0f} s",
                    end=end,
                    flush=True,
                )
    if process.returncode != 0:
        print("".join(log.read_text().splitlines(keepends=True)[-30:]), file=sys.stderr)
        stop(f"Horovod did not compile; the whole output is in {log}")
    say(f"Horovod compiled in {time.monotonic() - started:.0f} s")


def wanted() -> dict[str, str]:
    """What an installed environment is the result of: if this changes, it is brought up to date."""
    files = (REQUIREMENTS, PATCH, REPOSITORY / "pyproject.toml", Path(__file__))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files} | {"place": str(REPOSITORY)}


def main() -> None:
    """Bring the environment up to date; nothing to do takes a tenth of a second."""
    if sys.version_info[:2] != (3, 11):
        stop(
            f"the course needs Python 3.11, this is {sys.version.split()[0]}. Run: make PYTHON=/path/to/python3.11 ..."
        )
    if STAMP.exists() and json.loads(STAMP.read_text()) == wanted():
        return
    started = time.monotonic()
    system_packages()
    virtual_environment()
    say("installing the locked dependencies")
    pip("install", "-r", REQUIREMENTS)
    wheel = horovod_wheel()
    pip("install", "-q", "--no-deps", "--force-reinstall", wheel)
    pip("install", "-q", "--no-deps", "--no-build-isolation", "-e", REPOSITORY)
    subprocess.run([PYTHON, "-c", "import horovod.torch, cifar, grader"], check=True)
    STAMP.write_text(json.dumps(wanted()))
    say(f"ready after {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
