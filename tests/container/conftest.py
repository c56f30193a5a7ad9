"""The images are really built, on a base made by debootstrap, and commands run in them in a box. This needs root.

The box is bubblewrap with the image's files as its root. Like a container it has its own namespaces, so the grader's
sandbox can be tried inside. buildah's chroot isolation would not allow a sandbox in it.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, need_programs_and_root

BUILDAH = ("buildah",)
BASE = "localhost/horovod-course-base"
UID, HOST = "1000", "course"
BOX_SECONDS = 600


def buildah(*arguments: str | Path) -> str:
    return subprocess.run([*BUILDAH, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def data(cifar10: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of CIFAR-10 that the image's user can read. That user may not be allowed to read the cache."""
    folder = shutil.copytree(cifar10, tmp_path_factory.mktemp("data") / "cifar10")
    (folder.parent / "hosts").write_text(
        f"127.0.0.1 localhost {HOST}\n"
    )  # Every container engine gives its containers a file /etc/hosts.
    for path in (folder, *folder.parents[:-2]):
        path.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an image with nothing but Debian 12. It is made once per machine."""
    need_programs_and_root("buildah", "debootstrap", "bwrap", target="test-container")
    if not buildah("images", "-q", "--filter", f"reference={BASE}"):
        folder = tmp_path_factory.mktemp("base")
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", folder / "root"], check=True)
        subprocess.run(["tar", "-C", folder / "root", "-cf", folder / "root.tar", "."], check=True)
        shutil.rmtree(folder / "root")
        (folder / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
        buildah("bud", "--tag", BASE, folder)
        (folder / "root.tar").unlink()
    return BASE


@dataclass(frozen=True)
class Image:
    """An image has a name, and its files are mounted at `root`."""

    name: str
    root: Path

    @property
    def config(self) -> dict:
        return json.loads(buildah("inspect", "--type", "image", self.name))["Docker"]["config"]

    def run(self, *command: str, data: Path) -> subprocess.CompletedProcess:
        """Run a command in the image as its user, in its working folder, with CIFAR-10 in that user's cache."""
        config = self.config
        variables = [text for one in config["Env"] for text in ("--setenv", *one.split("=", 1))]
        cache = "/home/learner/.cache/horovod-course/cifar10"
        box = [
            "setpriv", "--reuid", UID, "--regid", UID, "--clear-groups", "bwrap", "--bind", self.root, "/",
            "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/home/learner", "--ro-bind", data, cache,
            "--ro-bind", data.parent / "hosts", "/etc/hosts",
            "--unshare-user", "--unshare-pid", "--unshare-uts", "--hostname", HOST, "--unshare-net",
            "--die-with-parent", "--clearenv", *variables, "--setenv", "HOME", "/home/learner",
            "--chdir", config["WorkingDir"],
        ]  # fmt: skip
        return subprocess.run([*box, *command], capture_output=True, text=True, timeout=BOX_SECONDS, check=False)


@pytest.fixture(scope="session")
def image(base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Image]]:
    """Yield a function that builds a target of the Dockerfile and mounts it. Everything is unmounted at the end."""
    mounted: dict[str, tuple[str, Image]] = {}

    def get(target: str) -> Image:
        if target not in mounted:
            name = f"localhost/horovod-course:{target}"
            script = REPOSITORY / "source_code" / "install" / "image.py"
            build = [sys.executable, script, "--target", target, "--base", base, "--tag", name, "--engine", "buildah"]
            subprocess.run(build, check=True)
            container, root = buildah("from", name), tmp_path_factory.mktemp(target)
            subprocess.run(["mount", "--bind", buildah("mount", container), root], check=True)
            for folder in (root, *root.parents[:-2]):
                folder.chmod(0o755)  # The image's user must be able to enter these folders.
            mounted[target] = container, Image(name, root)
        return mounted[target][1]

    yield get
    for container, one in mounted.values():
        subprocess.run(["umount", one.root], check=True)
        buildah("rm", container)
