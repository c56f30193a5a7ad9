"""Looks for whatever a learner must not see: solutions, gradebook, hidden tests, other submissions, secret images."""

import os
import sys
import time
from pathlib import Path

import cifar

ALLOWED = {Path(__file__).resolve(), *Path(os.environ["PYTHONPATH"]).rglob("*")}
WANTED = ("gradebook", "rubric", "solution", "expected.toml", "secret", "profiles.json", "shadow", "id_rsa", ".netrc")
course = Path(cifar.__file__).resolve().parents[2]


def found(what: object) -> None:
    print(f"FOUND {what}", flush=True)


def look_at_the_course() -> None:
    """The course's own folders, known from where its package lies."""
    for name in (
        "solutions",
        "grader/grading/rubric.py",
        "grader/common/profiles.json",
        "tests",
        "notebooks",
        "runs",
        "Makefile",
        ".git",
    ):
        if (course / name).exists():
            found(course / name)


def look_everywhere(seconds: float) -> None:
    """Every folder that can be listed, apart from the system's programs."""
    until = time.monotonic() + seconds
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr", "lib", "lib64", "bin", "sbin")]
        if Path(folder).is_relative_to(sys.base_prefix) or Path(folder).is_relative_to(sys.prefix):
            folders.clear()  # Python's own library has a secrets.py
            continue
        for name in files:
            path = Path(folder, name)
            if path.resolve() not in ALLOWED and (name == "train.py" or any(word in name for word in WANTED)):
                found(path)
        if time.monotonic() > until:
            return


def look_at_processes() -> None:
    """Other processes' files and environments; processes of this run are no secret."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            for place in ("root", "cwd"):
                if (folder / place / str(course).lstrip("/") / "solutions").exists():
                    found(folder / place)
        except OSError:
            continue
        if b"-m\0grader" in command or b"-m\0pytest" in command:
            found(command)


def look_at_data() -> None:
    """The data folder must hold no more than what one may train with."""
    data = Path(sys.argv[sys.argv.index("--data-dir") + 1])
    names = {path.name for path in data.iterdir()}
    if extra := names - {*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin", "manifest.json"}:
        found(extra)
    if (data / "test_batch.bin").stat().st_size > 1000 * 3073:
        found("more test images than the visible ones")


if os.environ["HOROVOD_RANK"] == "0":
    look_at_the_course()
    look_at_processes()
    look_at_data()
    look_everywhere(10)
    for name in os.environ:
        if any(word in name for word in ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")):
            found(name)
    print("looked everywhere", flush=True)
