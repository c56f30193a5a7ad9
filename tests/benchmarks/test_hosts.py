"""An elastic run goes on when it loses workers, uses each image, and takes in new workers with the right weights."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import hosts
from cifar.schedule import warmup_factor

COMMIT = 10  # cifar_elastic.py commits its state so often, in updates.
# The workers that are left go on within this time. For 30 seconds of it, Gloo waits for a worker that does not answer.
PAUSE_SECONDS = 90
REACHED = 0.35  # This share of the test images, and more, is right at the end of a run without any trouble.


@pytest.mark.slow
@pytest.mark.parametrize("trouble", hosts.TROUBLES)
def test_an_elastic_run_loses_no_image_and_reaches_the_target(trouble: str):
    made = hosts.elastic_run(trouble, print)
    stretches = made["stretches"]
    assert [stretch["workers"] for stretch in stretches] == [4, 2, 4]
    assert [stretch["hosts"] for stretch in stretches][1:] == [{"alpha": 2}, {"alpha": 2, "beta": 2}]
    assert made["lost"] == 0
    # The last batches of an epoch are filled up, so that all workers have equally many images.
    assert made["twice"] < 4 * hosts.SETTINGS["epochs"]
    assert all(stretch["equal_weights"] for stretch in stretches)  # New workers begin with the right weights.
    first, second, _ = (stretch["repeated"] for stretch in stretches)
    # A failure costs some updates. A host that leaves or comes back costs none.
    assert first <= (0 if trouble == "a host leaves" else COMMIT) and second == 0
    assert max(made["pauses"]) < PAUSE_SECONDS
    for stretch in stretches:
        for (_, images), rate in zip(stretch["points"], stretch["rates"], strict=True):
            warmup = 3 * hosts.SETTINGS["images"]
            assert rate == hosts.SETTINGS["lr"] * warmup_factor(images, warmup, stretch["workers"])
    assert [line["epoch"] for line in made["epochs"]] == list(range(1, hosts.SETTINGS["epochs"] + 1))
    assert made["epochs"][-1]["test_accuracy"] > REACHED


def test_a_run_that_has_a_result_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = {"pauses": [1.0], "lost": 0, "stretches": [{"repeated": 2}], "epochs": [{"test_accuracy": 0.5}]}
    for name in (hosts.TWO_HOSTS, hosts.CALM, *hosts.TROUBLES):
        path = hosts.path(name, 0, tmp_path)
        path.write_text(json.dumps({"name": name, "seed": 0} | made))
    monkeypatch.setattr(hosts, "two_hosts", None)
    monkeypatch.setattr(hosts, "elastic_run", None)
    hosts.run(1, Console(), tmp_path)
    assert hosts.show(Console(), tmp_path)
    lost = {"name": hosts.TROUBLES[0], "seed": 1} | made | {"lost": 3}
    hosts.path(hosts.TROUBLES[0], 1, tmp_path).write_text(json.dumps(lost))
    assert not hosts.show(Console(), tmp_path)


@pytest.mark.parametrize("trouble", (hosts.CALM, *hosts.TROUBLES))
def test_no_saved_run_has_lost_an_image(trouble: str):
    found = hosts.read(trouble)
    assert len(found) >= 3
    assert all(made["lost"] == 0 and made["twice"] < 4 * hosts.SETTINGS["epochs"] for made in found)
