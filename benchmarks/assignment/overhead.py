"""How much time does grading add to a run?

The reference runs in pairs, once bare and once graded. The times are compared, and the final weights must be equal.
`python -m benchmarks overhead` alternates which run of a pair comes first. It continues an interrupted measurement.
"""

import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.assignment.calibrate import REPOSITORY, VARIANTS
from benchmarks.experiment import results
from cifar import download
from cifar.model import ResNet9
from cifar.support.environment import cores, stop
from cifar.support.fingerprint import fingerprint
from cifar.support.horovodrun import programs_path
from grader.common import contract
from grader.common.contract import NETWORK_WIDTH, WORKERS
from grader.run import launch, rekeyed_data
from grader.sandbox.bubblewrap import Bubblewrap
from grader.sandbox.run_paths import RunPaths
from grader.submission import intake

SIZE = dataclasses.replace(contract.load("full"), name="overhead", epochs=10)  # ten epochs take at least three minutes
LIMIT = 0.05  # the aim: grading adds at most this share of a bare run's seconds
FOLDER = results.RESULTS / "overhead"


def bare(paths: RunPaths, seed: int) -> float:
    """Run the contract's command as a learner runs it. Returns its seconds."""
    environment = os.environ | {"PATH": programs_path(), "OMP_NUM_THREADS": str(max(1, cores() // WORKERS))}
    paths.output.mkdir()
    started = time.monotonic()
    with paths.log.open("wb") as log:
        command = launch.command(paths, SIZE, seed)
        subprocess.run(command, cwd=paths.source, env=environment, stdout=log, stderr=log, check=True)
    return time.monotonic() - started


def graded(paths: RunPaths, seed: int) -> float:
    """Run the contract's command as the grader does, observed in the sandbox. Returns its seconds.

    The program ends with a message if the run fails.
    """
    run = launch.run(paths, SIZE, seed, Bubblewrap, Console(quiet=True))
    if run.status != 0:
        stop(f"the graded run ended with status {run.status}: see {paths.log}")
    return run.seconds


WAYS = {"bare": bare, "graded": graded}


def run(pairs: int, console: Console) -> None:
    """Measure the first `pairs` pairs. Runs that have a result from this kind of machine are skipped."""
    here = results.kind(results.machine())
    for pair in range(pairs):
        for way in sorted(WAYS, reverse=pair % 2 == 1):
            path = FOLDER / f"{way}-{pair}.json"
            if path.exists() and results.kind(json.loads(path.read_text())["machine"]) == here:
                continue
            paths = RunPaths(REPOSITORY / "runs" / "overhead" / way)
            paths.clear()
            intake.take_in(VARIANTS["reference"], paths.source)
            rekeyed_data.write_folder(rekeyed_data.rekey(download.fetch(), "overhead", SIZE.train_images), paths.data)
            seconds = WAYS[way](paths, pair)
            result = {"way": way, "seed": pair, "seconds": seconds, "weights": weights(paths.output / "model.pt")}
            results.write(path, {**result, "settings": dataclasses.asdict(SIZE)})
            console.print(f"pair {pair}, {way}: {seconds:.1f} s", highlight=False)
            shutil.rmtree(paths.root)


def weights(path: Path) -> int:
    """The fingerprint of the weights in the checkpoint at `path`."""
    net = ResNet9(NETWORK_WIDTH)
    net.load_state_dict(torch.load(path, weights_only=True))
    return fingerprint(net.parameters())


def pairs() -> list[tuple[dict, dict]]:
    """The bare and the graded run of each pair. Only pairs from one kind of machine count: the kind with most pairs."""
    graded_runs = {run["seed"]: run for run in results.read(FOLDER, "graded")}
    by_machine = defaultdict(list)
    for bare_run in results.read(FOLDER, "bare"):
        graded_run, machine = graded_runs.get(bare_run["seed"]), results.kind(bare_run["machine"])
        if graded_run and results.kind(graded_run["machine"]) == machine:
            by_machine[machine].append((bare_run, graded_run))
    return max(by_machine.values(), key=len, default=[])


def share(bare: dict, graded: dict) -> float:
    """The time that grading adds to a run, as a share of the bare run's seconds."""
    return graded["seconds"] / bare["seconds"] - 1


def equal(found: list[tuple[dict, dict]]) -> bool:
    """Whether the weights are the same in each pair."""
    return all(bare["weights"] == graded["weights"] for bare, graded in found)


def sentence(found: list[tuple[dict, dict]]) -> str:
    """A sentence with the median and range over the pairs, the aim, and whether the weights agree."""
    shares = sorted(share(*pair) for pair in found)
    spread = f"{statistics.median(shares):+.1%} ({shares[0]:+.1%} to {shares[-1]:+.1%}) over {len(found)} pairs"
    same = "the same weights" if equal(found) else "DIFFERENT WEIGHTS"
    return f"median overhead {spread}, the aim is {LIMIT:.0%} at most; both runs of a pair end with {same}"


def described() -> dict[str, str | int]:
    """Texts that say how much time grading adds, and on which machine it was measured. Empty without a measurement.

    The keys are `message`, `machine` and `epochs`, the number of epochs of a run.
    """
    if not (measured := pairs()):
        return {}
    machines = sorted({results.described(run["machine"]) for pair in measured for run in pair})
    epochs = measured[0][0]["settings"]["epochs"]
    return {"message": sentence(measured), "machine": "; ".join(machines), "epochs": epochs}


def show(console: Console) -> bool:
    """Print each pair's overhead and their median.

    Returns whether the median is at most LIMIT and both runs of every pair end with equal weights.
    """
    found = pairs()
    if not found:
        stop(f"no pair in {FOLDER}. Leave --show out to measure.")
    for bare_run, graded_run in found:
        both = f"bare {bare_run['seconds']:.1f} s, graded {graded_run['seconds']:.1f} s"
        console.print(f"pair {bare_run['seed']}: {both}, {share(bare_run, graded_run):+.1%}", highlight=False)
    console.print(sentence(found), highlight=False)
    return equal(found) and statistics.median(share(*pair) for pair in found) <= LIMIT
