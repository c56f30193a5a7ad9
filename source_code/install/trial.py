"""Tries the whole course on a machine with a GPU that has PyTorch, but no network: from carried parts to results.

    python3 source_code/install/trial.py --parts PARTS

PARTS is the folder with the parts that `pack.py` has written. The parts may come one by one: with `--collect` this
program takes in those that are there, and says which are missing. Then it sets up an environment beside the PyTorch of
the Python that runs it, and compiles Horovod. It trains with all scripts, executes a lesson, grades the reference
solution, and measures `cifar_fast.py` beside airbench94.

A step that has succeeded is not repeated, so a call that was cut off goes on where it stopped. After each step
`home/trial.json` and `home/trial.tar.gz` hold all that is known: take these two files home.
"""

import argparse
import hashlib
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = REPOSITORY / "source_code"
WORKERS = 4  # The lessons use this many workers. Here they share one GPU.
LAST_LINES = 12  # This many of the last lines of each step's output are kept in trial.json.
AIRBENCH = "-m pip install -q --no-deps --no-build-isolation airbench==0.1.8"
VERSIONS = """\
import torch, horovod.torch as hvd
print("PyTorch", torch.__version__, "GPUs", torch.cuda.device_count())
print("Horovod with CUDA", hvd.cuda_built(), "with NCCL", hvd.nccl_built())
"""
MEASURED = REPOSITORY / "benchmarks" / "results" / "speed" / "gpu"


@dataclass(frozen=True)
class Step:
    """A command of the trial. If a step that `must_succeed` fails, no later step is tried."""

    name: str
    command: list[str]
    must_succeed: bool = False
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """The trial keeps its files in these folders below `root`."""

    root: Path

    @property
    def carried(self) -> Path:
        return self.root / "carried"

    @property
    def data(self) -> Path:
        return self.root / "cache" / "horovod-course" / "cifar10"

    @property
    def python(self) -> Path:
        return self.root / "env" / "bin" / "python"

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def home(self) -> Path:
        return self.root / "home"


def collect(parts: Path, places: Places) -> dict:
    """Copy the parts that are there, and return what `parts.json` says. Ends the program if there is no part at all."""
    places.carried.mkdir(parents=True, exist_ok=True)
    for file in sorted(parts.glob("part-*/*")) if parts.is_dir() else ():
        if not (target := places.carried / file.name).exists() or target.stat().st_size != file.stat().st_size:
            shutil.copy(file, target)
    if not (about := places.carried / "parts.json").exists():
        sys.exit(f"trial: no part in {parts}: name the folder that pack.py has written")
    return json.loads(about.read_text())


def missing(about: dict, carried: Path) -> list[int]:
    """Return the numbers of the parts in which a file is missing or not whole."""

    def whole(name: str, digest: str) -> bool:
        path = carried / name
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest

    parts = enumerate(about["parts"], 1)
    return [number for number, files in parts if not all(whole(*item) for item in files.items())]


def unpack_data(places: Places) -> None:
    """Unpack CIFAR-10's files into the folder in which the course looks for them. The course checks them itself."""
    places.data.mkdir(parents=True, exist_ok=True)
    for packed in places.carried.glob("*.bin.xz"):
        if not (target := places.data / packed.stem).exists():
            part = target.with_suffix(".part")
            part.write_bytes(lzma.decompress(packed.read_bytes()))
            part.replace(target)


def commit(about: dict) -> str:
    """Return the commit that was packed. "-dirty" is added to it if a file here differs from the packed one."""

    def same(name: str, digest: str) -> bool:
        path = REPOSITORY / name
        return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest

    results = "benchmarks/results/"
    differ = [
        name for name, digest in about["tracked"].items() if not name.startswith(results) and not same(name, digest)
    ]
    if differ:
        print(
            f"trial: {len(differ)} files differ from the commit that was packed, the first is {differ[0]}", flush=True
        )
    return about["commit"] + "-dirty" * bool(differ)


def steps(places: Places, quick: bool) -> list[Step]:
    """Return all steps in their order."""
    python, results = str(places.python), places.results
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(places.carried)}
    requirements = places.root / "requirements.txt"
    set_up = [sys.executable, str(SCRIPTS / "install" / "install.py"), "--beside-torch", str(requirements)]
    size = ["--images", "2048", "--epochs", "1"] if quick else ["--epochs", "4"]
    names = ("single", "base", "batch_norm", "scalelr", "warmup", "lamb")
    scripts = [Step(f"cifar_{name}", _script(name, places, size)) for name in names]
    check = [python, "-m", "grader", "check", "solutions/assignment", "--no-sandbox", "--output"]
    fast, full = (str(results / f"grade-{profile}") for profile in ("fast", "full"))
    lessons = [python, "-m", "lessons", "--profile", "quick" if quick else "gpu", "--output", str(results / "lessons")]
    return [
        Step("set-up", set_up, must_succeed=True, environment=offline),
        Step("airbench", [python, *AIRBENCH.split()], environment=offline),
        Step("data", [python, "-m", "cifar.download"], must_succeed=True),
        Step("versions", [python, "-c", VERSIONS], must_succeed=True),
        *scripts,
        Step("grade, fast", [*check, fast, "--profile", "fast"]),
        Step("time-on-gpu", [python, "-m", "benchmarks", "time-on-gpu", *(["--quick"] if quick else [])]),
        Step("lesson 02", [*lessons, "--only", "02"]),
        *([] if quick else [Step("grade, full", [*check, full])]),
    ]


def _script(name: str, places: Places, size: list[str]) -> list[str]:
    """Return the command of a lesson's script. It runs on four workers, except for the script for one worker."""
    output = ["--output-dir", str(places.results / f"cifar_{name}")]
    program = [str(places.python), str(SCRIPTS / f"cifar_{name}.py"), *size, *output]
    launcher = [str(places.python.with_name("horovodrun")), "-np", str(WORKERS)]
    return program if name == "single" else [*launcher, *program]


def run(step: Step, places: Places, environment: dict[str, str]) -> dict:
    """Run a step, keep its output in a file, and return what happened."""
    log = places.results / "logs" / f"{step.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("w") as out:
        status = subprocess.run(
            step.command, cwd=REPOSITORY, env=environment | step.environment, stdout=out, stderr=out,
            stdin=subprocess.DEVNULL, check=False,
        ).returncode  # fmt: skip
    lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    seconds = round(time.monotonic() - started, 1)
    return {"status": status, "seconds": seconds, "last_lines": lines, "command": " ".join(step.command)}


def bring_back(places: Places) -> None:
    """Copy measured results into the repository if they are no longer there.

    A workplace may copy the repository anew for each call, and then it has only the files that were packed.
    """
    if not MEASURED.is_dir() and (kept := places.results / "speed-gpu").is_dir():
        shutil.copytree(kept, MEASURED)


def take_home(places: Places, record: dict) -> None:
    """Write the results so far into the two files that are taken home."""
    places.home.mkdir(parents=True, exist_ok=True)
    if MEASURED.is_dir():
        shutil.copytree(MEASURED, places.results / "speed-gpu", dirs_exist_ok=True)
    part = places.home / ".part"
    with tarfile.open(part, "w:gz") as tar:
        tar.add(places.results, "results", filter=lambda one: None if one.name.endswith(".pt") else one)
    part.replace(places.home / "trial.tar.gz")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(places.home / "trial.json")


def trial(places: Places, about: dict, quick: bool) -> int:
    """Run the steps that have not succeeded yet. The exit status is 0 if all have succeeded now, and otherwise 1."""
    unpack_data(places)
    bring_back(places)
    (places.root / "requirements.txt").write_text("\n".join(about["requirements"]) + "\n")
    path = os.pathsep.join([str(places.python.parent), os.environ.get("PATH", "")])
    environment = os.environ | {
        "COURSE_ENV": str(places.root / "env"), "XDG_CACHE_HOME": str(places.root / "cache"), "PATH": path,
        "COURSE_COMMIT": commit(about), "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    known = places.home / "trial.json"
    record = json.loads(known.read_text()) if known.exists() else {"commit": environment["COURSE_COMMIT"], "steps": {}}
    todo = steps(places, quick)
    for number, step in enumerate(todo, 1):
        if record["steps"].get(step.name, {}).get("status") == 0:
            continue
        print(f"trial: {number}/{len(todo)} {step.name} ...", flush=True)
        try:
            record["steps"][step.name] = done = run(step, places, environment)
        finally:  # After an interrupt, what the step has measured so far is taken home.
            take_home(places, record)
        print(f"trial: {number}/{len(todo)} {step.name}: status {done['status']}, {done['seconds']} s", flush=True)
        if done["status"] != 0:
            print("".join(f"    {line}\n" for line in done["last_lines"]), end="", flush=True)
            if step.must_succeed:
                break
    failed = [step.name for step in todo if record["steps"].get(step.name, {}).get("status") != 0]
    print(f"trial: {len(todo) - len(failed)} of {len(todo)} steps succeeded. Take home: {places.home}", flush=True)
    return int(bool(failed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--parts", type=Path, required=True, metavar="DIR", help="the folder with the parts")
    add(
        "--folder", type=Path, default=REPOSITORY / "runs" / "trial", metavar="DIR", help="for all that the trial makes"
    )
    add("--collect", action="store_true", help="only take in the parts that are there, and say which are missing")
    add("--quick", action="store_true", help="small runs, to see that each step works")
    args = parser.parse_args()
    places = Places(args.folder.resolve())
    about = collect(args.parts, places)
    absent = missing(about, places.carried)
    if args.collect or absent:
        print(f"trial: {len(about['parts']) - len(absent)} of {len(about['parts'])} parts are here", flush=True)
    if args.collect:
        return 0
    if absent:
        sys.exit(f"trial: missing: {', '.join(f'part-{number:02}' for number in absent)}")
    return trial(places, about, args.quick)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("trial: interrupted; what is done is kept, the same command goes on", file=sys.stderr)
        sys.exit(130)
