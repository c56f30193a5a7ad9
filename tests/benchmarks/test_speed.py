"""The comparisons of speed: verdicts and tables that follow the numbers, and the loops that are compared."""

import subprocess
import sys

import pytest

from benchmarks import series, speed
from benchmarks.claim import Claim, Runs
from benchmarks.peers import on_peers
from benchmarks.speed import accuracy, communication, page, scaling, step
from benchmarks.workers import on_workers
from cifar.fingerprint import fingerprint


def looked_at(claim: Claim, module, runs: Runs) -> None:
    """A table whose rows are full, and a picture with words."""
    made, picture = module.table(runs), claim.picture(runs)
    assert made.rows and all(len(row) == len(made.heads) for row in made.rows)
    assert picture.alt and picture.caption and "nan" not in picture.alt + picture.caption
    picture.figure.canvas.draw()


def exchanging(**speeds: float) -> Runs:
    """Three rounds in which the ways have such speeds."""
    return {
        arm: [{"images_per_s": 1000 * speeds[arm.split("-")[2]] * factor} for factor in (0.9, 1.0, 1.1)]
        for arm in communication.CLAIM.arms
    }


@pytest.mark.parametrize(
    ("speeds", "word"),
    [
        ({"ours": 0.97, "alone": 1.0, "ddp": 0.98, "stock": 0.5}, "holds"),
        ({"ours": 0.93, "alone": 1.0, "ddp": 0.93, "stock": 0.5}, "depends"),
        ({"ours": 0.5, "alone": 1.0, "ddp": 0.9, "stock": 0.5}, "fails"),
    ],
)
def test_the_exchange_is_judged_by_its_aims(speeds: dict[str, float], word: str):
    runs = exchanging(**speeds)
    verdict = communication.judge(runs)
    assert verdict.word == word and ("instead of" in verdict.sentence) == (word != "holds")
    looked_at(communication.CLAIM, communication, runs)


def stepping(share: float) -> Runs:
    """Two rounds in which ours reaches such a share of the peak."""
    ours = {
        "images_per_s": share * 1000,
        "operations": 3 * 10**8,
        "bf16": True,
        "time": {**dict.fromkeys(step.KINDS, 0.1), "other": 0.5},
    }
    runs = {"peak": [{"float32": 1e11, "bfloat16": 3e11}] * 2}
    for network in ("resnet9", "bootcamp"):
        runs |= {f"{network}-ours": [ours] * 2, f"{network}-tutorial": [{"images_per_s": 100.0}] * 2}
    return runs


@pytest.mark.parametrize(("share", "word"), [(0.85, "holds"), (0.6, "depends"), (0.15, "fails")])
def test_a_step_is_judged_by_its_share_of_the_peak(share: float, word: str):
    runs = stepping(share)
    assert step.shares(runs, "resnet9") == pytest.approx(share)
    assert step.judge(runs).word == word and f"{share:.0%} of the peak" in step.judge(runs).sentence
    looked_at(step.CLAIM, step, runs)


def scaled(off: float = 1.0) -> Runs:
    """Two cores that follow the cost model, or are slower by a factor."""
    fixed, each, alpha, beta = 0.01, 0.0005, 0.0002, 2e-9
    runs = {
        f"epochs-{size}": [{"epochs": size + 1, "accuracy": 0.5}, {"epochs": None, "accuracy": 0.3}]
        for size in scaling.SIZES
    }
    for way, batch in scaling.BATCHES.items():
        for size in scaling.SIZES:
            mine = batch // size if way == "strong" else batch
            ring = [2 * (size - 1) * alpha + 2 * (size - 1) / size * n * beta for n in (4096, 1_600_000)]
            seconds = fixed * max(1, size / 2) + each * mine * size + ring[1]
            seconds *= off if size > 1 else 1
            one = {"batch": mine, "update_seconds": seconds, "images_per_s": size * mine / seconds, "cores": 2}
            more = {"memory": [2**28] * size, "bytes": [4096, 1_600_000], "all_reduce": ring if size > 1 else []}
            runs[f"{way}-{size}"] = [one | more] * 2
    return runs


def test_the_cost_model_finds_what_follows_it_and_not_what_does_not():
    runs = scaled()
    for way in scaling.BATCHES:
        for size in scaling.SIZES:
            assert scaling.predicted(runs, way, size) == pytest.approx(
                runs[f"{way}-{size}"][0]["images_per_s"], rel=0.01
            )
    assert scaling.judge(runs).word == "holds" and scaling.judge(scaled(off=2)).word == "fails"
    looked_at(scaling.CLAIM, scaling, runs)
    assert "3.0, not reached in 1 of 2" in str(scaling.table(runs).rows)


def reaching(*accuracies: float) -> Runs:
    """Runs of ours that end each with such an accuracy after 200 seconds; the others reach 85 %, but one nothing."""
    runs = {
        arm: [{"seconds": [50.0, 250.0], "accuracy": [0.6, 0.85], "processor": 500.0}] * len(accuracies)
        for arm in accuracy.PROGRAMS
    }
    runs["resnet18"] = [{"seconds": [], "accuracy": [], "processor": 1200.0}] * len(accuracies)
    runs["fast"] = [{"seconds": [100.0, 200.0], "accuracy": [0.7, one], "processor": 400.0} for one in accuracies]
    return runs


@pytest.mark.parametrize(
    ("accuracies", "word"), [((0.905, 0.91), "holds"), ((0.905, 0.89), "fails"), ((0.8, 0.8), "fails")]
)
def test_time_to_accuracy_needs_every_run(accuracies: tuple[float, ...], word: str):
    runs = reaching(*accuracies)
    assert accuracy.judge(runs).word == word
    looked_at(accuracy.CLAIM, accuracy, runs)
    assert "not reached" in str(accuracy.table(runs).rows)


def test_a_program_that_takes_too_long_keeps_what_it_did(monkeypatch):
    monkeypatch.setitem(
        accuracy.PROGRAMS, "fast", ("small", [accuracy.PROGRAMS["bootcamp"][1][0], "--epochs", "10000"])
    )
    run = accuracy.run("fast", 0, {"images": 512, "limit": 25})
    assert run["accuracy"] and len(run["accuracy"]) == len(run["seconds"]) and run["processor"] > 5
    assert run["seconds"] == sorted(run["seconds"]) and run["seconds"][-1] < 25


def test_the_operations_of_an_image_are_two_for_each_multiply_add():
    net = step.nn.Sequential(step.nn.Conv2d(3, 4, 3, padding=1), step.nn.Flatten(), step.nn.Linear(4 * 32 * 32, 5))
    first, last = 2 * 3 * 4 * 9 * 32 * 32, 2 * 4 * 32 * 32 * 5
    assert step.operations(net) == first + last and step.of_a_step(net) == 2 * first + 3 * last


def weights(sleep: bool) -> int:
    """On a worker: what six updates of ResNet-9 make of its weights, with the same grouping of gradients."""
    from benchmarks.speed import loop

    return fingerprint(loop.train(sleep, 1, "resnet9", 8, updates=3)[0].parameters())


def test_ours_computes_what_stock_horovod_computes_to_the_last_bit():
    found = {
        way: on_workers(f"{__name__}:weights", 4, environment, sleep=means["sleep"])
        for way, (environment, means) in communication.HOROVOD.items()
    }
    assert found["ours"] == found["stock"] and len(set(found["ours"])) == 1


def test_a_plain_loop_and_a_step_of_ours_have_a_speed():
    assert step.tutorial("bootcamp", 16, updates=2) > 0
    found = on_workers("benchmarks.speed.step:ours", 1, network="bootcamp", updates=1)[0]
    assert found["images_per_s"] > 0 and found["operations"] > 1e6
    assert sum(found["time"].values()) == pytest.approx(1) and found["time"]["convolution"] > 0.05


def test_with_torch_distributed_the_loop_runs_too():
    for way in ("alone", "ddp"):
        seconds = on_peers("benchmarks.speed.loop:peer", 2, way=way, network="bootcamp", batch_size=16, updates=2)
        assert len(seconds) == 2 and min(seconds) > 0


def test_the_page_says_what_is_there_and_what_is_missing(tmp_path):
    for arm, values in exchanging(ours=0.97, alone=1.0, ddp=0.98, stock=0.5).items():
        for seed, one in enumerate(values):
            content = {"claim": "communication", "arm": arm, "seed": seed, "settings": {"images": 1}, "values": one}
            series.results.write(tmp_path / "communication" / f"{arm}-{seed}.json", content)
    page.write(tmp_path, tmp_path / "index.html")
    text = (tmp_path / "index.html").read_text()
    assert "10 of 10 aims are met" in text and "provisional: 3 of 5 seeds" in text
    assert "Not measured yet" in text and "python -m benchmarks speed --only step" in text
    assert text.count("<img") == 1 and "http" not in text.split("<body>")[1]


def test_a_wrong_name_is_one_line():
    command = [sys.executable, "-m", "benchmarks", "speed", "--only", "light"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "communication" in done.stderr
    with pytest.raises(KeyError):
        speed.get("light")
