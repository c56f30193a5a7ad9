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
MPI = ["libopenmpi-dev", "openmpi-bin"]  # A Horovod with MPI is built and run with these.
# The programs of these packages do not have the packages' names.
PROGRAMS = {
    SANDBOX: "bwrap", "iproute2": "ip", "openssh-client": "ssh", "openssh-server": "sshd",
    "libopenmpi-dev": "mpicxx", "openmpi-bin": "mpirun", "slurm-wlm": "slurmd", "munge": "munged",
}  # fmt: skip
WORKERS = 4  # The lessons and the assignment train with this many workers.
PYTHONS = ("3.11", "3.12", "3.13")  # `make test-all` sets up, trains and grades on each of these versions.
HOROVOD = "horovod==0.28.1"
HOROVOD_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
BUILD_FLAGS = {
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
}
# With MPI as well, `horovodrun` uses MPI unless it is called with --gloo.
WITH_MPI = {"HOROVOD_WITHOUT_MPI": "0", "HOROVOD_WITH_MPI": "1"}
# With CUDA, Horovod learns from CUDA events when a gradient is ready. Gloo still exchanges the gradients.
WITH_CUDA = {"HOROVOD_GPU": "CUDA"}
# NCCL is linked as a shared library, because PyTorch comes with it in this form.
WITH_NCCL = WITH_CUDA | {"HOROVOD_GPU_OPERATIONS": "NCCL", "HOROVOD_NCCL_LINK": "SHARED"}
DOWNLOAD_SECONDS = 20  # If PyTorch's own package source sends nothing for this time, pip's source is used.


def stop(message: str) -> None:
    """End the program with one line that says what is wrong and what to do."""
    sys.exit(f"install: {message}")


def say(message: str) -> None:
    print(f"install: {message}", flush=True)


def call(command: list, told: str, **options) -> None:
    """Run a program that prints its own errors. If it fails, end with one line, `told`."""
    if subprocess.run(command, check=False, **options).returncode != 0:
        stop(told)


def again() -> str:
    """Return the command that was called. Calling it again continues the work."""
    return f"{sys.executable} {' '.join(sys.argv)}"


def is_there(package: str) -> bool:
    """Return whether this machine has what a Debian package contains. It may have come from somewhere else."""
    if package == "python3-dev":
        return (Path(sysconfig.get_paths()["include"]) / "Python.h").is_file()
    if package == "python3-venv":
        return importlib.util.find_spec("ensurepip") is not None  # Debian has venv's pip in a package of its own.
    if package == "patch" and shutil.which("git"):
        return True  # git can apply a patch, too.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"  # debootstrap is in /usr/sbin, which a Debian user's PATH lacks.
    return shutil.which(PROGRAMS.get(package, package), path=path) is not None


def system_packages(packages: list[str]) -> None:
    """Install missing packages if this is a Debian or Ubuntu machine and we are root. Otherwise print the command.

    The program ends if a package is still missing. Only the sandbox may be missing.
    """
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
    """Make the environment if there is none that works. Ends the program if the folder holds something else.

    With `beside_torch`, the environment can import the PyTorch of the Python that runs this program.
    """
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
    """Run the environment's pip and show its progress bars. End with one line if it fails."""
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments]
    call(command, f"pip failed (see above). To try again: {again()}")


def pytorch(gpus: int | None = None) -> None:
    """Install the locked PyTorch as a build for this machine, unless the environment has a PyTorch.

    By default pip on Linux chooses a build with CUDA, which takes 5 GB. A machine without an NVIDIA driver gets the
    build for the CPU from PyTorch's own package source. It takes a tenth of that. uv knows the address of this source.
    If it cannot be reached, pip chooses the build in the next step. pip also chooses it if `gpus` is given, because
    the build is then for another machine.
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
    """Return the folder of the CUDA toolkit that `nvcc` belongs to, or None if no nvcc works.

    nvcc itself says where this is, because the `nvcc` on the path may be a script in another folder.
    """
    if not shutil.which("nvcc"):
        return None
    dry_run = subprocess.run(["nvcc", "--dryrun", "-x", "cu", os.devnull], capture_output=True, text=True, check=False)
    found = re.search(r"^#\$ TOP=(.+)$", dry_run.stderr, re.MULTILINE)
    return Path(found[1]).resolve() if found else None


def builds(gpus: int | None = None, mpi: bool = False) -> list[dict[str, str]]:
    """Return the build flags of Horovod to try, the best first. With `mpi` it can use MPI and Gloo.

    They are with CUDA if PyTorch has CUDA and a compiler for it is there. `gpus` is the number of GPUs of the machine
    that Horovod is built for. None means this machine. NCCL exchanges the gradients if each worker has its own GPU. It
    does not allow two workers on one GPU, so with fewer GPUs Gloo exchanges them.
    """
    probe = "import json, torch; print(json.dumps([torch.version.cuda, torch.cuda.device_count()]))"
    cuda, found = json.loads(subprocess.check_output([PYTHON, "-c", probe], text=True))
    able = cuda and toolkit()
    if gpus and not able:
        stop(f"--gpus {gpus} needs a PyTorch with CUDA (this one has {cuda or 'none'}) and an nvcc that works")
    gpus = found if gpus is None else gpus
    base = BUILD_FLAGS | (WITH_MPI if mpi else {})
    if not (able and gpus):
        return [base]
    with_cuda = [WITH_NCCL, WITH_CUDA] if gpus >= WORKERS else [WITH_CUDA]
    return [*(base | flags for flags in with_cuda), base]


def nccl_folder(scratch: Path) -> dict[str, str]:
    """Return the variable that tells Horovod's build where NCCL is, or an empty dict if there is none.

    pip has installed this NCCL with PyTorch. Its header and library are linked in `scratch` under the names that the
    build looks for.
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
    """Return the folder of the cache for the wheel that fits this Python, this PyTorch, our patch and these flags."""
    probe = "import sys, torch; print(sys.implementation.cache_tag, torch.__version__)"
    versions = subprocess.check_output([PYTHON, "-c", probe], text=True).strip()
    key = json.dumps([HOROVOD, versions, PATCH.read_text(), flags, os.uname().machine])
    return CACHE / "wheels" / hashlib.sha256(key.encode()).hexdigest()[:16]


def horovod_wheel(gpus: int | None, mpi: bool = False) -> Path:
    """Return the path of the Horovod wheel in the cache. It is built if it is not there.

    A build takes two to four minutes on two cores, and eight minutes with CUDA. If a build with CUDA fails and the user
    has not asked for it, one line says so, and the next build is tried.
    """
    for flags in (tried := builds(gpus, mpi)):
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
    """Build the wheel into a folder, and return whether it compiled. The wheel appears whole or not at all."""
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
    """Download, check, patch and compile Horovod in `scratch`. Return whether it compiled.

    The wheel is then in the folder `wheel` of `scratch`.
    """
    say(f"downloading the source of {HOROVOD}")
    pip("download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", scratch, HOROVOD)
    archive = next(scratch.glob("*.tar.gz"))
    if hashlib.sha256(archive.read_bytes()).hexdigest() != HOROVOD_SHA256:
        stop(f"the download of {HOROVOD} is not the file that the course was written for (SHA-256 differs); try again")
    # The archive's hash is right, so it needs no filter for unsafe members. Python 3.11.2 does not have such filters.
    shutil.unpack_archive(archive, scratch)
    source = scratch / archive.name.removesuffix(".tar.gz")
    change = ["patch", "--strip=1", "--quiet", f"--input={PATCH}"] if shutil.which("patch") else ["git", "apply", PATCH]
    # Without this variable, `git apply` would look for a repository in the folders above.
    apart = os.environ | {"GIT_CEILING_DIRECTORIES": str(scratch)}
    call(change, f"{PATCH} does not fit {HOROVOD}", cwd=source, env=apart)
    command = [PYTHON, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", scratch / "wheel", source]
    # The environment's CMake comes first on the path. If there are several CUDA toolkits, nvcc's own comes next.
    first = [PYTHON.parent, *([toolkit() / "bin"] if "HOROVOD_GPU" in flags else [])]
    path = os.pathsep.join([*map(str, first), os.environ["PATH"]])
    nccl = nccl_folder(scratch) if "HOROVOD_GPU_OPERATIONS" in flags else {}
    return compile_with_progress(command, os.environ | flags | nccl | {"PATH": path})


def compile_with_progress(command: list, environment: dict[str, str]) -> bool:
    """Run the build, show CMake's percentage, and keep its output in a file. Return whether it succeeded."""
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
    """Return what each part of the environment depends on. A part is installed again if this has changed."""

    def hashed(*files: Path) -> str:
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()

    course = f"{hashed(PROJECT)} in {REPOSITORY}" if PROJECT.exists() else ""  # An image's first layers do not have it.
    return {"dependencies": hashed(REQUIREMENTS, PATCH, Path(__file__)), "course": course}


def installed() -> dict[str, str]:
    return json.loads(STAMP.read_text()) if STAMP.exists() else {}


def note(part: str, **more: str) -> None:
    """Write into the stamp that a part is installed, and `more`.

    The stamp is written whole or not at all, because a stamp that cannot be read would end every later call.
    """
    done = STAMP.with_suffix(".part")
    done.write_text(json.dumps(installed() | {part: wanted()[part]} | more))
    done.replace(STAMP)


def dependencies(args: argparse.Namespace) -> None:
    """Install everything except the course itself."""
    system_packages(NEEDED + (MPI if args.mpi else []))
    virtual_environment(bool(args.beside_torch))
    pytorch(args.gpus)
    say("installing the locked dependencies")
    pip("install", "-r", args.beside_torch or REQUIREMENTS)
    wheel = horovod_wheel(args.gpus, args.mpi)
    say("installing Horovod")
    pip("install", "-q", "--no-deps", "--force-reinstall", wheel)
    note("dependencies", **({"mpi": "built"} if args.mpi else {}))


def course() -> None:
    """Install the course's packages as links to their folders, and check that they can be imported."""
    pip("install", "-q", "--no-deps", "--no-build-isolation", "-e", REPOSITORY)
    told = f"what was installed does not start (see above). To install it anew, remove {STAMP} and run {again()}"
    call([PYTHON, "-c", "import horovod.torch, cifar, grader"], told)
    note("course")


def main(arguments: list[str] | None = None) -> None:
    """Bring the environment up to date. If there is nothing to do, this takes a tenth of a second."""
    args = parse(arguments)
    if f"{sys.version_info[0]}.{sys.version_info[1]}" not in PYTHONS:
        fitting = f"the course needs Python {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}"
        stop(f"{fitting}, this is {sys.version.split()[0]}. Run: make PYTHON=/path/to/python{PYTHONS[-1]} ...")
    system_packages(args.also)
    started, done, want = time.monotonic(), installed(), wanted()
    stale = [part for part in want if done.get(part) != want[part]]
    if args.mpi and "mpi" not in done and "dependencies" not in stale:
        stale.append("dependencies")
    args.mpi |= "mpi" in done  # An environment that has a Horovod with MPI keeps it.
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
    add("--mpi", action="store_true", help="build Horovod with MPI as well; horovodrun then uses Gloo with --gloo only")
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
