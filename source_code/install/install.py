"""From a bare machine to a working course: system packages, .venv, the locked dependencies, Horovod.

    python3 source_code/install/install.py

Needs only Python's standard library. Done steps are not repeated; an interrupted one starts again. Downloads and the
Horovod wheel are kept in the user's cache folder, so that a second clone takes a minute. COURSE_ENV names another
environment than .venv, conda's for instance: `make COURSE_ENV=$CONDA_PREFIX course`. A PyTorch that the environment
already has is kept.
"""

import argparse
import hashlib
import importlib.util
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
VENV = Path(os.environ.get("COURSE_ENV") or REPOSITORY / ".venv").absolute()
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "course-installed.json"
REQUIREMENTS, PROJECT = REPOSITORY / "requirements.txt", REPOSITORY / "pyproject.toml"
PATCH = HERE / "horovod-0.28.1.patch"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "horovod-course"

SANDBOX = "bubblewrap"
NEEDED = ["g++", "make", "patch", SANDBOX, "python3-dev", "python3-venv"]
PROGRAMS = {SANDBOX: "bwrap"}  # where a package's program has another name
WORKERS = 4  # of the lessons and of the assignment
PYTHONS = ("3.11", "3.12", "3.13")  # the versions on which `make test-all` sets up, trains and grades
HOROVOD = "horovod==0.28.1"
HOROVOD_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
BUILD_FLAGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
}
WITH_CUDA = {"HOROVOD_GPU": "CUDA"}  # CUDA events tell Horovod when a gradient is ready; the exchange itself is Gloo's
WITH_NCCL = WITH_CUDA | {"HOROVOD_GPU_OPERATIONS": "NCCL", "HOROVOD_NCCL_LINK": "SHARED"}  # PyTorch brings it shared
DOWNLOAD_SECONDS = 20  # without a byte from PyTorch's own package source, before pip's is taken


def stop(message: str) -> None:
    """End with one line that says what is wrong and what to do."""
    sys.exit(f"install: {message}")


def say(message: str) -> None:
    print(f"install: {message}", flush=True)


def call(command: list, told: str, **options) -> None:
    """Run a program whose own output says what went wrong; end with one line if it fails."""
    if subprocess.run(command, check=False, **options).returncode != 0:
        stop(told)


def again() -> str:
    """The command that was called, which goes on where it ended."""
    return f"{sys.executable} {' '.join(sys.argv)}"


def is_there(package: str) -> bool:
    """Whether this machine has what a Debian package brings, wherever that came from."""
    if package == "python3-dev":
        return (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file()
    if package == "python3-venv":
        return importlib.util.find_spec("ensurepip") is not None  # Debian ships venv's pip apart
    if package == "patch" and shutil.which("git"):
        return True  # git can apply a patch, too
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"  # where debootstrap is, and a Debian user does not look
    return shutil.which(PROGRAMS.get(package, package), path=path) is not None


def system_packages(packages: list[str]) -> None:
    """Install what is missing where that is possible, else name the command; only the sandbox can be done without."""
    if not (missing := [package for package in packages if not is_there(package)]):
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if shutil.which("apt-get") and os.geteuid() == 0:
        say(f"installing system packages: {' '.join(missing)}")
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(command, check=False)
        missing = [package for package in packages if not is_there(package)]
    told = f"missing: {', '.join(missing)}. On Debian or Ubuntu: sudo {' '.join(command)}"
    if set(missing) - {SANDBOX}:
        stop(told)
    if missing:
        say(f"{told} (without it the grader runs a submission only with --no-sandbox)")


def virtual_environment(beside_torch: bool = False) -> None:
    """Make .venv if there is none that works; with the PyTorch of the Python that runs this if that is wanted."""
    check = [PYTHON, "-m", "pip", "--version"]
    if PYTHON.exists() and subprocess.run(check, capture_output=True, check=False).returncode == 0:
        return
    if VENV.exists() and not (VENV == REPOSITORY / ".venv" or STAMP.exists()):
        stop(
            f"{VENV} is there and has no Python with pip; COURSE_ENV must name an environment with pip, or nothing yet"
        )
    say(f"making a virtual environment in {VENV}")
    shutil.rmtree(VENV, ignore_errors=True)
    call([sys.executable, "-m", "venv", VENV], f"no environment could be made in {VENV} (see above)")
    if beside_torch:
        packages = Path(importlib.util.find_spec("torch").origin).parents[1]
        inside = subprocess.check_output(
            [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        )
        # The environment's own packages come before these.
        (Path(inside.strip()) / "beside-torch.pth").write_text(f"{packages}\n")


def pip(*arguments: str | Path) -> None:
    """Run the environment's pip, its progress bars shown; end with one line if it fails."""
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments]
    call(command, f"pip failed (see above). To try again: {again()}")


def pytorch(gpus: int | None = None) -> None:
    """Install the locked PyTorch as a build for this machine, unless the environment has a PyTorch.

    What pip finds by default on Linux is a build with CUDA, which takes 5 GB. A machine without an NVIDIA driver gets
    the build for the CPU, which takes a tenth of that, from PyTorch's own package source. uv knows where that is. Where
    it cannot be reached, pip's choice is taken a step later, and so it is where GPUs of other machines are asked for.
    """
    probe = "import importlib.metadata; importlib.metadata.version('torch')"
    there = subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0
    if there or gpus or os.environ.get("PIP_NO_INDEX"):
        return
    pip("install", "-q", "--constraint", REQUIREMENTS, "uv")
    locked = next(line for line in REQUIREMENTS.read_text().splitlines() if line.startswith("torch=="))
    backend = "auto" if has_nvidia_driver() else "cpu"
    say(f"installing {locked}, the build for {'this GPU' if backend == 'auto' else 'the CPU'}")
    command = [PYTHON.with_name("uv"), "pip", "install", "--python", PYTHON, "--no-deps", "--torch-backend", backend]
    patience = {"UV_HTTP_TIMEOUT": str(DOWNLOAD_SECONDS), "UV_HTTP_RETRIES": "1"}
    done = subprocess.run([*command, locked], env=os.environ | patience, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        say("PyTorch's own package source could not give this build, so pip chooses one")


def has_nvidia_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def toolkit() -> Path | None:
    """The folder of the CUDA toolkit that `nvcc` belongs to, which may be a script elsewhere; None where none works."""
    if not shutil.which("nvcc"):
        return None
    dry_run = subprocess.run(["nvcc", "--dryrun", "-x", "cu", os.devnull], capture_output=True, text=True, check=False)
    found = re.search(r"^#\$ TOP=(.+)$", dry_run.stderr, re.MULTILINE)
    return Path(found[1]).resolve() if found else None


def builds(gpus: int | None = None) -> list[dict[str, str]]:
    """The build flags of Horovod to try, the best first: with CUDA where PyTorch has it and a compiler for it is there.

    `gpus` is how many the machine has that it is built for; None for this one's. NCCL exchanges the gradients where
    each worker has a GPU. It refuses two workers on one GPU, so on fewer GPUs Gloo does.
    """
    probe = "import json, torch; print(json.dumps([torch.version.cuda, torch.cuda.device_count()]))"
    cuda, found = json.loads(subprocess.check_output([PYTHON, "-c", probe], text=True))
    able = cuda and toolkit()
    if gpus and not able:
        stop(f"--gpus {gpus} needs a PyTorch with CUDA (this one has {cuda or 'none'}) and an nvcc that works")
    gpus = found if gpus is None else gpus
    if not (able and gpus):
        return [BUILD_FLAGS]
    with_cuda = [WITH_NCCL, WITH_CUDA] if gpus >= WORKERS else [WITH_CUDA]
    return [*(BUILD_FLAGS | flags for flags in with_cuda), BUILD_FLAGS]


def nccl_folder(scratch: Path) -> dict[str, str]:
    """Where Horovod's build finds the NCCL that pip has installed beside PyTorch; nothing where there is none.

    Its header and library are linked in `scratch` under the names that the build looks for.
    """
    probe = "import nvidia.nccl; print(*nvidia.nccl.__path__)"
    found = subprocess.run([PYTHON, "-c", probe], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        return {}
    home = scratch / "nccl"
    (home / "lib").mkdir(parents=True)
    (home / "include").symlink_to(Path(found.stdout.strip()) / "include")
    (home / "lib" / "libnccl.so").symlink_to(Path(found.stdout.strip()) / "lib" / "libnccl.so.2")
    return {"HOROVOD_NCCL_HOME": str(home)}


def wheel_folder(flags: dict[str, str]) -> Path:
    """Where the cache keeps the wheel that fits this Python, this PyTorch, our patch and these flags."""
    probe = "import sys, torch; print(sys.implementation.cache_tag, torch.__version__)"
    versions = subprocess.check_output([PYTHON, "-c", probe], text=True).strip()
    key = json.dumps([HOROVOD, versions, PATCH.read_text(), flags, os.uname().machine])
    return CACHE / "wheels" / hashlib.sha256(key.encode()).hexdigest()[:16]


def horovod_wheel(gpus: int | None) -> Path:
    """The Horovod wheel: from the cache, or built into it (two to four minutes on two cores, eight with CUDA).

    Where a build with CUDA fails that nobody has asked for, one line says so, and the next one is tried.
    """
    for flags in (tried := builds(gpus)):
        target = wheel_folder(flags)
        if list(target.glob("*.whl")) or build_into(target, flags):
            return next(target.glob("*.whl"))
        if gpus or flags == tried[-1]:
            print("".join(build_log().read_text().splitlines(keepends=True)[-30:]), file=sys.stderr)
            stop(f"Horovod did not compile; the whole output is in {build_log()}")
        with_what = "NCCL" if "HOROVOD_GPU_OPERATIONS" in flags else "CUDA"
        say(f"Horovod did not compile with {with_what} (see {build_log()}), so it is built without")
    raise AssertionError("the last build either succeeds or ends the program")


def build_log() -> Path:
    return CACHE / "horovod-build.log"


def build_into(target: Path, flags: dict[str, str]) -> bool:
    """Build the wheel into a folder, where it appears whole or not at all; whether it compiled."""
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"cannot write to {CACHE}: {error.strerror}. Name another cache folder by XDG_CACHE_HOME.")
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".building-") as scratch:
        if not build_wheel(Path(scratch), flags):
            return False
        built = next((Path(scratch) / "wheel").glob("*.whl"))
        target.mkdir(parents=True, exist_ok=True)
        built.replace(target / built.name)
    return True


def build_wheel(scratch: Path, flags: dict[str, str]) -> bool:
    """Download, check, patch and compile Horovod in `scratch`, the wheel in its folder `wheel`; whether it compiled."""
    say(f"downloading the source of {HOROVOD}")
    pip("download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", scratch, HOROVOD)
    archive = next(scratch.glob("*.tar.gz"))
    if hashlib.sha256(archive.read_bytes()).hexdigest() != HOROVOD_SHA256:
        stop(f"the download of {HOROVOD} is not the file that the course was written for (SHA-256 differs); try again")
    shutil.unpack_archive(archive, scratch)  # whose hash is known; Python 3.11.2 has no filter to name
    source = scratch / archive.name.removesuffix(".tar.gz")
    change = ["patch", "--strip=1", "--quiet", f"--input={PATCH}"] if shutil.which("patch") else ["git", "apply", PATCH]
    apart = os.environ | {"GIT_CEILING_DIRECTORIES": str(scratch)}  # `git apply` would look for a repository above
    call(change, f"{PATCH} does not fit {HOROVOD}", cwd=source, env=apart)
    command = [PYTHON, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", scratch / "wheel", source]
    # The environment's CMake comes first, and of several toolkits that of nvcc.
    first = [PYTHON.parent, *([toolkit() / "bin"] if "HOROVOD_GPU" in flags else [])]
    path = os.pathsep.join([*map(str, first), os.environ["PATH"]])
    nccl = nccl_folder(scratch) if "HOROVOD_GPU_OPERATIONS" in flags else {}
    return compile_with_progress(command, os.environ | flags | nccl | {"PATH": path})


def compile_with_progress(command: list, environment: dict[str, str]) -> bool:
    """Run the build, showing CMake's percentage, and keep its output; whether it succeeded."""
    started, shown, steps = time.monotonic(), -1, 1 if sys.stdout.isatty() else 20
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with process, build_log().open("w") as file:
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
    if process.returncode == 0:
        say(f"Horovod compiled in {time.monotonic() - started:.0f} s")
    return process.returncode == 0


def wanted() -> dict[str, str]:
    """What each part of an installed environment is the result of: if this changes, it is brought up to date."""

    def hashed(*files: Path) -> str:
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()

    course = f"{hashed(PROJECT)} in {REPOSITORY}" if PROJECT.exists() else ""  # an image's first layers lack it
    return {"dependencies": hashed(REQUIREMENTS, PATCH, Path(__file__)), "course": course}


def installed() -> dict[str, str]:
    return json.loads(STAMP.read_text()) if STAMP.exists() else {}


def note(part: str) -> None:
    """Whole or not at all: a stamp that cannot be read would end every later call."""
    done = STAMP.with_suffix(".part")
    done.write_text(json.dumps(installed() | {part: wanted()[part]}))
    done.replace(STAMP)


def dependencies(args: argparse.Namespace) -> None:
    """Install all but the course itself."""
    system_packages(NEEDED)
    virtual_environment(bool(args.beside_torch))
    pytorch(args.gpus)
    say("installing the locked dependencies")
    pip("install", "-r", args.beside_torch or REQUIREMENTS)
    wheel = horovod_wheel(args.gpus)
    say("installing Horovod")
    pip("install", "-q", "--no-deps", "--force-reinstall", wheel)
    note("dependencies")


def course() -> None:
    """Make the environment find the course's packages where they are."""
    pip("install", "-q", "--no-deps", "--no-build-isolation", "-e", REPOSITORY)
    told = f"what was installed does not start (see above). To install it anew, remove {STAMP} and run {again()}"
    call([PYTHON, "-c", "import horovod.torch, cifar, grader"], told)
    note("course")


def main(arguments: list[str] | None = None) -> None:
    """Bring the environment up to date; nothing to do takes a tenth of a second."""
    args = parse(arguments)
    if f"{sys.version_info[0]}.{sys.version_info[1]}" not in PYTHONS:
        fitting = f"the course needs Python {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}"
        stop(f"{fitting}, this is {sys.version.split()[0]}. Run: make PYTHON=/path/to/python{PYTHONS[-1]} ...")
    system_packages(args.also)
    started, done, want = time.monotonic(), installed(), wanted()
    stale = [part for part in want if done.get(part) != want[part]]
    if not stale:
        return
    if "dependencies" in stale:
        dependencies(args)
    if not args.dependencies:
        course()
    say(f"ready after {time.monotonic() - started:.0f} s")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--dependencies", action="store_true", help="only these and Horovod; the image's layer that seldom changes")
    add("--gpus", type=int, metavar="N", help="build Horovod for so many GPUs (default: those of this machine)")
    about = "install these requirements beside the PyTorch of the Python that runs this (used by trial.py)"
    add("--beside-torch", type=Path, metavar="FILE", help=about)
    add("--also", nargs="+", default=[], metavar="PACKAGE", help="Debian packages that a target needs, as chromium")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print(f"\ninstall: interrupted. To go on: {again()}", file=sys.stderr)
        sys.exit(130)
