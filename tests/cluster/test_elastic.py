"""An elastic run goes on when it loses workers, uses each image, and takes in new workers with the right weights."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cluster
from cifar import elastic
from cifar.schedule import warmup_factor
from cluster import Cluster
from tests.conftest import RUN_SECONDS, SCRIPTS, until

IMAGES, EPOCHS, BATCH_SIZE, RATE = 4096, 5, 32, 0.001
COMMIT = 10  # cifar_elastic.py commits its state so often, in updates.
# The workers that are left go on within this time. For 30 seconds of it, Gloo waits for a worker that does not answer.
PAUSE_SECONDS = 90
REACHED = 0.35  # This share of the test images is right at the end of a run without any trouble, and more.


@pytest.fixture
def two_hosts():
    with cluster.up(2) as made:
        yield made


def start(two_hosts: Cluster, output: Path) -> subprocess.Popen:
    """Start an elastic run of four workers on two hosts, which goes on with two workers."""
    launch = ["horovodrun", "-np", "4", "--min-np", "2", "--max-np", "4"]
    launch += ["--host-discovery-script", SCRIPTS / "answering_hosts.sh", "--blacklist-cooldown-range", "3", "6"]
    run = ["--network-interfaces", "eth0", sys.executable, SCRIPTS / "cifar_elastic.py", "--output-dir", output]
    options = {"--epochs": EPOCHS, "--images": IMAGES, "--batch-size": BATCH_SIZE, "--test-images": 1000, "--lr": RATE}
    given = [str(text) for pair in options.items() for text in pair]
    command = two_hosts.hosts["alpha"].command(*launch, *run, *given)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def updates(output: Path) -> int:
    """Return the number of updates that a worker of host alpha has made so far."""
    journals = list((output / "journal").glob("alpha-*.jsonl"))
    return journals[0].read_text().count('"ended"') if journals else 0


def epochs(output: Path) -> list[dict]:
    path = output / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["a worker is killed", "a host is killed", "a cable is cut"])
def test_an_elastic_run_loses_no_image_and_reaches_the_target(two_hosts: Cluster, tmp_path: Path, trouble: str):
    process = start(two_hosts, tmp_path)
    until(lambda: updates(tmp_path) >= 45)  # This is in the middle of the second epoch, and between two commits.
    beta = two_hosts.hosts["beta"]
    if trouble == "a worker is killed":
        beta.run("sh", "-c", "kill -9 $(pgrep -f '^[^ ]*python[^ ]* [^ ]*cifar_elastic.py' | head -1)")
    elif trouble == "a host is killed":
        beta.kill()
    else:
        beta.cut()
    if trouble != "a worker is killed":
        until(lambda: len(epochs(tmp_path)) == 2, RUN_SECONDS)
        beta.mend() if trouble == "a cable is cut" else two_hosts.start("beta")
    output, _ = process.communicate(timeout=RUN_SECONDS)
    assert process.returncode == 0, output

    stretches = elastic.read(tmp_path)
    assert [stretch.size for stretch in stretches] == [4, 2, 4]
    assert [dict(stretch.hosts) for stretch in stretches][1:] == [{"alpha": 2}, {"alpha": 2, "beta": 2}]
    for epoch in range(EPOCHS):
        uses = elastic.uses(stretches, epoch)
        assert set(uses) == set(range(IMAGES))  # No image is lost.
        assert sum(count - 1 for count in uses.values()) < 4  # The workers' last batches are filled up to be equal.
    assert [len(stretch.weights) for stretch in stretches] == [1, 1, 1]  # New workers begin with the right weights.
    first, second, third = stretches
    assert 0 < first.repeated < COMMIT and second.repeated == 0  # A failure costs some updates. A new host costs none.
    assert elastic.pause(first, second) < PAUSE_SECONDS and elastic.pause(second, third) < PAUSE_SECONDS
    for stretch in stretches:
        for (epoch, done), rate in stretch.rate.items():
            assert rate == RATE * warmup_factor(epoch * IMAGES + done, 3 * IMAGES, stretch.size)
    assert [line["epoch"] for line in epochs(tmp_path)] == list(range(1, EPOCHS + 1))
    assert epochs(tmp_path)[-1]["test_accuracy"] > REACHED


def write(path: Path, *lines: dict | str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


def begin(when: float, done: int, size: int, host: str) -> dict:
    return {"begin": when, "epoch": 0, "done": done, "size": size, "host": host, "weights": 7}


def update(when: float, done: int, *images: int) -> dict:
    return {"ended": when, "epoch": 0, "done": done, "rate": 0.1, "images": list(images)}


def test_updates_that_were_made_again_are_not_counted(tmp_path: Path):
    """Two workers make three updates. The last commit was after the first one. Then one worker dies."""
    alpha = [begin(1, 0, 2, "alpha"), update(2, 0, 0, 1), update(3, 4, 4, 5), update(4, 8, 8)]
    write(tmp_path / "journal" / "alpha-1.jsonl", *alpha, begin(20, 4, 1, "alpha"), update(23, 4, 4, 6, 5, 7))
    write(
        tmp_path / "journal" / "beta-1.jsonl",
        begin(1, 0, 2, "beta"), update(2, 0, 2, 3), update(3.5, 4, 6, 7), '{"ended": 4, "epo',
    )  # fmt: skip
    first, second = elastic.read(tmp_path)
    assert (first.size, second.size, first.repeated, second.repeated) == (2, 1, 2, 0)
    assert (first.hosts, second.hosts) == ({"alpha": 1, "beta": 1}, {"alpha": 1})
    assert elastic.uses([first, second], 0) == dict.fromkeys(range(8), 1)
    assert elastic.pause(first, second) == 23 - 4


def test_an_image_that_was_lost_or_used_twice_is_seen(tmp_path: Path):
    write(tmp_path / "journal" / "alpha-1.jsonl", begin(1, 0, 1, "alpha"), update(2, 0, 0, 1), update(3, 2, 1, 3))
    uses = elastic.uses(elastic.read(tmp_path), 0)
    assert uses[1] == 2 and uses[2] == 0
