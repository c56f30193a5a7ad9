"""Gathers what a machine without network needs for the course, in parts that can be carried there one by one.

    python source_code/install/pack.py --python 3.12

A part is a folder of at most 55 MB. Together they hold the Python packages for that version of Python, the source of
Horovod, and CIFAR-10. PyTorch is not in them: the other machine has one. On that machine `trial.py` puts the parts
together. Each part has a `parts.json`. It says which files belong to all of them, and which commit they are for.
"""

import argparse
import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import install
from packaging.requirements import Requirement

from cifar import download

REPOSITORY = Path(__file__).resolve().parents[2]
# The largest size of a part. A call may carry 64 MB, and this leaves room in it for the course's own files.
PART_BYTES = 55_000_000
AIRBENCH = "airbench==0.1.8"  # On a GPU, `cifar_fast.py` is compared with this package.
# These are the names of wheels for Linux on x86-64 that pip accepts, in the new form and in the old one.
MANYLINUX = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 26, 24, 17, 12, 5)] + [
    f"manylinux{year}_x86_64" for year in (2014, 2010, 1)
]


def requirements(python: str) -> list[str]:
    """Return the locked packages that the course needs on Linux with this Python.

    PyTorch is not among them, nor are packages that only tests need.
    """
    target = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    lines = (REPOSITORY / "requirements.txt").read_text().splitlines()
    locked = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    left_out = {Requirement(line).name for line in project["optional-dependencies"]["dev"]} | {"torch", "uv"}
    kept = [one for one in locked if one.name not in left_out and (not one.marker or one.marker.evaluate(target))]
    return [f"{one.name}{one.specifier}" for one in kept]


def download_packages(python: str, wanted: list[str], folder: Path) -> None:
    """Download these packages as wheels for a version of Python. Horovod and airbench are downloaded as source."""
    platforms = [word for name in MANYLINUX for word in ("--platform", name)]
    target = ["--python-version", python, "--implementation", "cp", "--abi", f"cp{python.replace('.', '')}"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "-d", folder]
    stable = ["--abi", "abi3", "--abi", "none"]
    for command in (
        [*pip, "--only-binary=:all:", *platforms, *target, *stable, *wanted],
        [*pip, "--no-binary=:all:", "--no-build-isolation", install.HOROVOD, AIRBENCH],
    ):
        if subprocess.run(command, check=False).returncode != 0:
            sys.exit("pack: a package could not be downloaded (see above); try again")


def compress_data(folder: Path) -> None:
    """Compress each of CIFAR-10's six files into `folder`."""
    for name in download.SHA256:
        with lzma.open(folder / f"{name}.xz", "wb") as packed:
            packed.write((download.fetch() / name).read_bytes())


def parts(files: list[Path]) -> list[list[Path]]:
    """Divide the files into parts. Each file, the largest first, goes into the first part with room for it."""
    found: list[list[Path]] = []
    for file in sorted(files, key=lambda path: -path.stat().st_size):
        size = file.stat().st_size
        room = (part for part in found if sum(one.stat().st_size for one in part) + size <= PART_BYTES)
        if part := next(room, None):
            part.append(file)
        else:
            found.append([file])
    return found


def commit() -> str:
    """Return the commit of this repository. Ends the program if a file differs from it.

    Results of the other machine name this commit, and they would not say that a file differed.
    """
    git = ["git", "-C", str(REPOSITORY)]
    if subprocess.check_output([*git, "status", "--porcelain"], text=True).strip():
        sys.exit("pack: commit your changes first: results of the other machine name the commit that they are of")
    return subprocess.check_output([*git, "rev-parse", "--short=12", "HEAD"], text=True).strip()


def tracked() -> dict[str, str]:
    """Return the SHA-256 of each file of the commit. The other machine uses it to see whether it has the same files."""
    names = subprocess.check_output(["git", "-C", str(REPOSITORY), "ls-files", "-z"], text=True).split("\0")
    return {name: hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest() for name in names if name}


def pack(python: str, output: Path) -> list[Path]:
    """Write the folders of the parts into `output`, and return them. They replace everything that was there before."""
    about = {"python": python, "requirements": requirements(python), "commit": commit(), "tracked": tracked()}
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".packing-") as scratch:
        files = Path(scratch) / "files"
        files.mkdir()
        print(f"pack: downloading {len(about['requirements'])} packages for Python {python}", flush=True)
        download_packages(python, about["requirements"], files)
        print("pack: compressing CIFAR-10", flush=True)
        compress_data(files)
        found = parts(list(files.iterdir()))
        about["parts"] = [{one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in part} for part in found]
        whole = Path(scratch) / "whole"
        for number, part in enumerate(found, 1):
            folder = whole / f"part-{number:02}"
            folder.mkdir(parents=True)
            for file in part:
                file.replace(folder / file.name)
            (folder / "parts.json").write_text(json.dumps(about))
        shutil.rmtree(output, ignore_errors=True)
        whole.replace(output)
    return sorted(output.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", choices=install.PYTHONS, default="3.12", help="the other machine's (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, default=Path("runs/parts"), help="folder (default: %(default)s)")
    args = parser.parse_args()
    for folder in pack(args.python, args.output):
        print(f"{folder}  {sum(file.stat().st_size for file in folder.iterdir()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
