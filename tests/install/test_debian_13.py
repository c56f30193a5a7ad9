"""The course is set up and trains on Debian 13, whose compiler is newer than Debian 12's and refuses more.

The machine is this one with another `/usr`: the compiler, the libraries and the Python are those of Debian 13. This
needs root.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, need_programs_and_root
from tests.install.test_pythons import SETUP_SECONDS, train

pytestmark = pytest.mark.slow
PACKAGES = "bubblewrap,ca-certificates,g++,make,patch,python3,python3-dev,python3-venv"


@pytest.fixture
def debian(tmp_path: Path) -> list[str]:
    """Return the beginning of a command that runs the command's remaining part on Debian 13."""
    need_programs_and_root("debootstrap", "bwrap", target="with-buildah")
    root = tmp_path / "debian"
    make = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "trixie", root]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, timeout=SETUP_SECONDS)
    return ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(root / "usr"), "/usr"]


def test_the_course_is_set_up_and_trains_on_debian_13(debian: list[str], tmp_path: Path, cifar10: Path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("PIP_FIND_LINKS", "COURSE_ENV")}
    clean |= {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    compiler = subprocess.check_output([*debian, "g++", "-dumpversion"], env=clean, text=True)
    assert int(compiler) >= 14
    subprocess.run([*debian, "make", "setup"], cwd=clone, env=clean, check=True, timeout=SETUP_SECONDS)
    assert "epoch 1/1" in train(clone, debian)
