"""Builds the course's image with docker where a daemon answers, with buildah otherwise: `make image`.

First all wheels are downloaded with this machine's pip and its settings; the build itself then needs only the base
image's own packages.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import install

BUILDAH = ("buildah", "bud", "--isolation", "chroot", "--format", "docker", "--layers")


def main() -> None:
    """Build the image. The exit status is 0 if this succeeds. Otherwise it is 1, and the last line says what failed."""
    args = parse()
    engine = args.engine or ("docker" if docker_answers() else "buildah")
    install.system_packages([engine])
    command = [
        *(("docker", "buildx", "build", "--load") if engine == "docker" else BUILDAH),
        "--target", args.target, "--tag", args.tag or f"horovod-course:{args.target}",
        "--build-context", f"wheels={wheels()}", "--build-arg", f"GPUS={args.gpus}",
        "--build-arg", f"PYTHON={sys.version_info[0]}.{sys.version_info[1]}",
        *(("--build-arg", f"BASE={args.base}") if args.base else ()), install.REPOSITORY,
    ]  # fmt: skip
    install.say(f"building with {engine}")
    if subprocess.run(command, check=False).returncode != 0:
        install.stop(f"{engine} failed (see above); the same command goes on where it stopped")


def docker_answers() -> bool:
    """Return whether docker is installed and its daemon answers."""
    command = ["docker", "version"]
    return bool(shutil.which("docker")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def wheels() -> Path:
    """Return a folder of the cache that has only the locked wheels and Horovod's source. They are downloaded once.

    Other settings of pip may lead to other wheels, with CUDA or without. So the folder's name depends on the settings.
    """
    settings = subprocess.check_output([install.PYTHON, "-m", "pip", "config", "list"])
    key = hashlib.sha256(install.REQUIREMENTS.read_bytes() + settings).hexdigest()[:16]
    folder = install.CACHE / "image-wheels" / key
    if not folder.exists():
        install.say(f"downloading wheels to {folder}")
        part = folder.with_suffix(".part")
        install.pip("download", "-q", "-d", part, "-r", install.REQUIREMENTS)
        source = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", install.HOROVOD]
        install.pip("download", "-q", "-d", part, *source)
        part.rename(folder)
    return folder


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--target", choices=("learner", "grade"), default="learner", help="learner's has no solutions (the default)")
    add("--base", help="image to start from (default: the Dockerfile's)")
    add("--tag", help="name of the image (default: horovod-course:TARGET)")
    add("--engine", choices=("docker", "buildah"), help="what builds it (default: docker if its daemon answers)")
    add("--gpus", type=int, default=0, help="how many GPUs it will run on, with a CUDA base (default: none)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
