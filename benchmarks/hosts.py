"""Runs on two hosts of this machine, and elastic runs that lose workers, with what each failure costs.

    python -m benchmarks hosts

Each run has one result file. A run that has a result is not repeated, so an interrupted command continues where it
stopped.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from rich.console import Console

import cluster
from benchmarks.experiment import results
from benchmarks.instruments import elastic_journal
from cluster import Cluster
from grader.common.atomic_write import write_whole

FOLDER = results.RESULTS / "hosts"
SOURCE = Path(__file__).resolve().parents[1] / "source_code"
RATE = "1gbit"  # of each host's link
TWO_HOSTS = "two hosts"
CALM = "nothing goes wrong"
TROUBLES = ("a worker is killed", "a host is killed", "a cable is cut", "a host leaves")
BOTH = "alpha:2\nbeta:2\n"  # what a discovery script prints when both hosts may be used
SETTINGS = {"epochs": 5, "images": 4096, "test_images": 1000, "batch_size": 32, "lr": 0.001}
TROUBLE_AT = 45  # updates; this is in the middle of the second epoch, and between two commits
BACK_AFTER = 2  # epochs; a killed host comes back, and a cut cable is put back, when so many have ended
RUN_SECONDS = 900  # a run takes one to three minutes, so one that takes longer hangs
Say = Callable[[str], object]


def command(script: str, *options: object, output: Path, **settings: object) -> list[str]:
    """Return the command line that runs a lesson script on the hosts alpha and beta, with two workers each."""
    launch = ["horovodrun", "-np", "4", *map(str, options), "--network-interfaces", "eth0"]
    given = {"--output-dir": output} | {f"--{name.replace('_', '-')}": value for name, value in settings.items()}
    return [*launch, sys.executable, str(SOURCE / script), *(str(text) for pair in given.items() for text in pair)]


def two_hosts(say: Say, seed: int = 0) -> dict:
    """Train with two workers on each of two hosts. Returns the lines of the run and of its metrics."""
    with cluster.up(2, RATE) as hosts, tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS | {"epochs": 1, "seed": seed}
        line = command("cifar_base.py", "-H", "alpha:2,beta:2", output=Path(folder), **settings)
        lines = follow(start(hosts, line), hosts, say)
        return {"settings": settings, "rate": RATE, "lines": lines, "epochs": epochs(Path(folder))}


def elastic_run(trouble: str, say: Say, seed: int = 0) -> dict:
    """Train elastically on two hosts, and make trouble on the second one, or none. Returns what became of the run.

    `stretches` has the parts between two changes of the workers: for each its number of workers, the updates that were
    made and those that were repeated later, and its `points`: seconds since the launch, and images done since the run
    began. `pauses` has the seconds between two stretches. `lost` and `twice` count images, over all epochs.
    """
    with cluster.up(2, RATE) as hosts, tempfile.TemporaryDirectory() as folder:
        output, settings = Path(folder), SETTINGS | {"seed": seed}
        discovery = ["--host-discovery-script", discovery_script(trouble, output)]
        options = ["--min-np", 2, "--max-np", 4, *discovery, "--blacklist-cooldown-range", 3, 6]
        line = command("cifar_elastic.py", *options, output=output, **settings)
        began, process = time.time(), start(hosts, line)
        if trouble != CALM:
            threading.Thread(target=make_trouble, args=(process, hosts, trouble, output, say), daemon=True).start()
        lines = follow(process, hosts, say)
        return {"settings": settings, "rate": RATE, "trouble": trouble, "lines": lines} | summary(output, began)


def discovery_script(trouble: str, output: Path) -> Path:
    """Return the script that prints the hosts of a run. If a host is to leave, the script prints a file of ours."""
    if trouble != "a host leaves":
        return SOURCE / "answering_hosts.sh"
    (output / "hosts").write_text(BOTH)
    script = output / "listed_hosts.sh"
    script.write_text(f"#!/bin/sh\ncat {output}/hosts\n")
    script.chmod(0o755)
    return script


def start(hosts: Cluster, line: list[str]) -> subprocess.Popen:
    """Start a command on the first host."""
    return subprocess.Popen(
        hosts.hosts["alpha"].command(*line), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip


def follow(process: subprocess.Popen, hosts: Cluster, say: Say) -> list[str]:
    """Say the lines of a run as they come, and return them. Raises RuntimeError if the run fails or hangs."""
    timer = threading.Timer(RUN_SECONDS, hosts.hosts["alpha"].kill)
    timer.start()
    lines = []
    try:
        for text in process.stdout:
            lines.append(text.rstrip())
            say(lines[-1])
        process.wait()
    finally:
        timer.cancel()
        process.stdout.close()
    if process.returncode != 0:
        raise RuntimeError(f"the run ended with {process.returncode}; its last lines:\n" + "\n".join(lines[-15:]))
    return lines


def make_trouble(process: subprocess.Popen, hosts: Cluster, trouble: str, output: Path, say: Say) -> None:
    """Wait until the run has made some updates, make trouble on host beta, and later bring beta back."""
    if not wait(process, lambda: updates(output) >= TROUBLE_AT):
        return
    say(f"now {trouble}, on host beta")
    beta = hosts.hosts["beta"]
    begin, finish = {
        "a worker is killed": (lambda: workers_of(beta)[0].kill(), None),  # Horovod itself starts new workers there.
        "a host is killed": (beta.kill, lambda: hosts.start("beta")),
        "a cable is cut": (beta.cut, beta.mend),
        "a host leaves": (
            lambda: write_whole(output / "hosts", "alpha:2\n"),
            lambda: write_whole(output / "hosts", BOTH),
        ),
    }[trouble]
    begin()
    if finish and wait(process, lambda: len(epochs(output)) >= BACK_AFTER):
        say("now host beta comes back")
        finish()


def workers_of(host: cluster.Host) -> list[psutil.Process]:
    """Return the workers of an elastic run on a host."""
    family = host.namespaces.process.children(recursive=True)
    return [process for process in family if process.cmdline()[1:2] == [str(SOURCE / "cifar_elastic.py")]]


def wait(process: subprocess.Popen, true: Callable[[], bool]) -> bool:
    """Wait until a condition is true, and return True. Return False if the run ends before."""
    while process.poll() is None:
        if true():
            return True
        time.sleep(0.02)
    return False


def updates(output: Path) -> int:
    """Return the number of updates that a worker of host alpha has made so far."""
    journals = list((output / "journal").glob("alpha-*.jsonl"))
    return journals[0].read_text().count('"ended"') if journals else 0


def epochs(output: Path) -> list[dict]:
    """Return the lines of a run's metrics so far."""
    path = output / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summary(output: Path, began: float) -> dict:
    """Return what the journals of an elastic run tell. `began` is the time at which the run was launched."""
    stretches, images = elastic_journal.read(output), SETTINGS["images"]
    used = [elastic_journal.uses(stretches, epoch) for epoch in range(SETTINGS["epochs"])]
    return {
        "stretches": [
            {
                "workers": stretch.size,
                "hosts": dict(stretch.hosts),
                "updates": len(stretch.images),
                "repeated": stretch.repeated,
                "equal_weights": len(stretch.weights) == 1,
                "rates": [rate for _, rate in sorted(stretch.rate.items())],
                "points": [
                    [round(stretch.ended[place] - began, 2), place[0] * images + place[1]]
                    for place in sorted(stretch.images)
                ],
            }
            for stretch in stretches
        ],
        "pauses": [elastic_journal.pause(*pair) for pair in itertools.pairwise(stretches)],
        "lost": sum(images - len(uses) for uses in used),
        "twice": sum(sum(count - 1 for count in uses.values()) for uses in used),
        "epochs": epochs(output),
    }


def path(name: str, seed: int, folder: Path = FOLDER) -> Path:
    """Return the path of a run's result."""
    return folder / f"{name.replace(' ', '_')}-{seed}.json"


def read(name: str, folder: Path = FOLDER) -> list[dict]:
    """Return the saved results of the runs with this name, in the order of their seeds."""
    return results.read(folder, name.replace(" ", "_"))


def run(seeds: int, console: Console, folder: Path = FOLDER) -> None:
    """Make each run that has no result yet. Raises ClusterError if hosts cannot be had here."""
    for seed in range(seeds):
        for name in (TWO_HOSTS, CALM, *TROUBLES):
            if path(name, seed, folder).exists():
                continue
            console.print(f"{name}, seed {seed}", highlight=False)
            made = two_hosts(console.out, seed) if name == TWO_HOSTS else elastic_run(name, console.out, seed)
            results.write(path(name, seed, folder), {"name": name, "seed": seed} | made)


def show(console: Console, folder: Path = FOLDER) -> bool:
    """Print a line for each kind of trouble. Returns whether each has a result, and no run has lost an image."""
    for name in (CALM, *TROUBLES):
        for made in read(name, folder):
            pauses = " and ".join(f"{seconds:.0f} s" for seconds in made["pauses"]) or "no length"
            repeated = sum(stretch["repeated"] for stretch in made["stretches"])
            told = f"{made['lost']} images lost, {repeated} updates repeated, pauses of {pauses}"
            reached = made["epochs"][-1]["test_accuracy"]
            console.print(f"{name}, seed {made['seed']}: {told}, {reached:.1%} at the end", highlight=False)
    found = [made for name in (CALM, *TROUBLES) for made in read(name, folder)]
    return all(read(name, folder) for name in (TWO_HOSTS, CALM, *TROUBLES)) and not any(made["lost"] for made in found)
