"""The verdicts and tables of the comparisons of speed follow the numbers, and the compared loops are right."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks import speed
from benchmarks.__main__ import main
from benchmarks.assignment import overhead
from benchmarks.experiment import runner
from benchmarks.experiment.claim import Claim, Runs
from benchmarks.instruments.gloo_processes import on_peers
from benchmarks.instruments.horovod_launch import AS_IT_IS, on_workers
from benchmarks.speed import page
from benchmarks.speed.comparisons import (
    accuracy_ablation,
    communication,
    gpu,
    scaling,
    setup_time,
    step,
    time_to_accuracy,
)
from benchmarks.speed.rivals import airbench94
from cifar import fast
from cifar.data import load
from cifar.support.fingerprint import fingerprint
from tests.conftest import REPOSITORY


def looked_at(claim: Claim, module, runs: Runs) -> None:
    """Assert that all rows of the table are full, and that the picture has words."""
    made, picture = module.table(runs), claim.picture(runs)
    assert made.rows and all(len(row) == len(made.heads) for row in made.rows)
    assert picture.alt and picture.caption and "nan" not in picture.alt + picture.caption
    picture.figure.draw_without_rendering()


def exchanging(**speeds: float) -> Runs:
    """Return three rounds in which the ways have these speeds."""
    return {
        variant: [{"images_per_s": 1000 * speeds[variant.split("-")[2]] * factor} for factor in (0.9, 1.0, 1.1)]
        for variant in communication.CLAIM.variants
    }


@pytest.mark.parametrize(
    ("speeds", "word"),
    [
        ({"ours": 0.97, "wait": 0.98, "alone": 1.0, "ddp": 0.98, "stock": 0.5}, "holds"),
        ({"ours": 0.93, "wait": 0.94, "alone": 1.0, "ddp": 0.93, "stock": 0.5}, "depends"),
        ({"ours": 0.5, "wait": 0.9, "alone": 1.0, "ddp": 0.9, "stock": 0.5}, "fails"),
    ],
)
def test_the_exchange_is_judged_by_its_aims(speeds: dict[str, float], word: str):
    runs = exchanging(**speeds)
    verdict = communication.judge(runs)
    assert verdict.word == word and ("instead of" in verdict.sentence) == (word != "holds")
    if word == "depends":
        assert "with nothing sent: 0.989 (0.989 to 0.989)" in verdict.sentence
    looked_at(communication.CLAIM, communication, runs)


def test_one_disturbed_round_decides_nothing_and_is_told():
    runs = exchanging(ours=0.97, wait=0.98, alone=1.0, ddp=0.98, stock=0.5)
    runs["resnet9-512-ours"] = [runs["resnet9-512-ours"][0], runs["resnet9-512-ours"][1], {"images_per_s": 900.0}]
    assert communication.judge(runs).word == "holds"
    assert [row[-1] for row in communication.table(runs).rows].count("yes (2 of 3 rounds)") == 2


def stepping(share: float) -> Runs:
    """Return two rounds in which ours reaches this share of the peak."""
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
    """Return runs on two cores that follow the cost model, or are slower by a factor."""
    fixed, each, alpha, beta = 0.01, 0.0005, 0.0002, 2e-9
    tried = {"most": 10, "accuracy": 0.5, "target": 0.45, "images": 8192, "batch_size": 128}
    runs = {f"epochs-{size}": [tried | {"epochs": epochs} for epochs in (size + 1, None)] for size in scaling.SIZES}
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
    assert ">10 (3 to >10)" in str(scaling.table(runs).rows)


def reaching(*accuracies: float) -> Runs:
    """Return runs of ours that end with these accuracies after 200 seconds.

    The other programs reach 85 %, except resnet18, which has no evaluation at all.
    """

    def one(*ends: tuple[float, float]) -> dict:
        seconds, accuracies = [at for at, _ in ends], [of for _, of in ends]
        return {"seconds": seconds, "processor": [2 * at for at in seconds], "accuracy": accuracies}

    runs = {variant: [one((50.0, 0.6), (250.0, 0.85))] * len(accuracies) for variant in time_to_accuracy.PROGRAMS}
    runs["resnet18"] = [one()] * len(accuracies)
    runs["fast"] = [one((100.0, 0.7), (200.0, last)) for last in accuracies]
    return runs


@pytest.mark.parametrize(
    ("accuracies", "word"), [((0.905, 0.91), "holds"), ((0.905, 0.89), "fails"), ((0.8, 0.8), "fails")]
)
def test_time_to_accuracy_needs_every_run(accuracies: tuple[float, ...], word: str):
    runs = reaching(*accuracies)
    assert time_to_accuracy.judge(runs).word == word
    looked_at(time_to_accuracy.CLAIM, time_to_accuracy, runs)
    rows = time_to_accuracy.table(runs).rows
    bootcamp = ("the bootcamp's, repaired", "80%", "250 (250 to 250)", "1.25 (1.25 to 1.25)", "500 (500 to 500)")
    assert bootcamp in rows
    assert (
        "ResNet-18, the common recipe",
        "90%",
        "not reached in 10 minutes",
        "-",
        "not reached in 10 minutes",
    ) in rows
    assert ("ResNet-18, the common recipe", "no epoch ended in time", "", "", "") in rows
    ended = (
        "the bootcamp's, repaired",
        "last evaluation 85.0 (85.0 to 85.0) %",
        "250 (250 to 250)",
        "",
        "500 (500 to 500)",
    )
    assert ended in rows


def test_a_program_that_takes_too_long_keeps_what_it_did(monkeypatch, cifar10):
    program = [time_to_accuracy.PROGRAMS["bootcamp"][1][0], "--epochs", "10000", "--test-images", "500"]
    monkeypatch.setitem(time_to_accuracy.PROGRAMS, "fast", ("small", program))
    for limit in (12, 36, 108, 324):  # A slow machine takes longer until its first evaluation.
        if (run := time_to_accuracy.run("fast", 0, {"images": 512, "limit": limit, "device": "cpu"}))["accuracy"]:
            break
    assert run["accuracy"] and len(run["accuracy"]) == len(run["seconds"]) == len(run["processor"])
    assert run["seconds"] == sorted(run["seconds"]) and run["seconds"][-1] <= limit
    assert run["processor"] == sorted(run["processor"]) and run["processor"][0] > 2
    assert run["processor"][-1] < 1.1 * len(os.sched_getaffinity(0)) * run["seconds"][-1]


def keeping(**means: float) -> Runs:
    """Return five seeds around these accuracies."""
    return {
        variant: [{"test_accuracy": mean + by, "seconds": 1.0} for by in (-0.002, -0.001, 0.0, 0.001, 0.002)]
        for variant, mean in means.items()
    }


@pytest.mark.parametrize(
    ("means", "word"),
    [
        ({"bfloat16": 0.88, "float32": 0.88, "whole": 0.87}, "holds"),
        ({"bfloat16": 0.86, "float32": 0.88, "whole": 0.87}, "fails"),
        ({"bfloat16": 0.88, "float32": 0.88, "whole": 0.90}, "fails"),
    ],
)
def test_what_makes_fast_may_not_cost_accuracy(means: dict[str, float], word: str):
    runs = keeping(**means)
    assert accuracy_ablation.judge(runs).word == word
    looked_at(accuracy_ablation.CLAIM, accuracy_ablation, runs)
    few = {variant: found[:1] for variant, found in runs.items()}
    assert accuracy_ablation.judge(few).word == "no difference seen", "one seed each says nothing"


def test_smaller_images_are_compared_with_as_many_operations():
    epochs = accuracy_ablation.EPOCHS["float32"]
    pixels = sum(fast.pixels(epoch, epochs) ** 2 for epoch in range(epochs))
    assert pixels / 32**2 == pytest.approx(accuracy_ablation.EPOCHS["whole"], rel=0.03)


@pytest.mark.parametrize("variant", accuracy_ablation.NAMES)
def test_a_fast_run_without_a_mean_of_speed(variant: str, cifar10: Path, monkeypatch):
    monkeypatch.setattr(time_to_accuracy, "WORKERS", 2)
    found = accuracy_ablation.run(variant, 0, {**accuracy_ablation.CLAIM.quick, "device": "cpu"})
    assert 0 < found["test_accuracy"] < 1 and found["seconds"] > 0


def on_a_gpu(one: float, four: float, accuracy: float = 0.9405) -> Runs:
    """Return five rounds of ours and of airbench94, which reaches 94.05 % in three seconds."""
    means = {"airbench94": (3.0, 0.9405), "1_worker": (one, accuracy), "4_workers": (four, accuracy)}
    return {
        variant: [
            {"seconds": seconds * factor, "test_accuracy": mean + factor / 1000 - 0.001, "images_per_s": 1000.0}
            for factor in (0.9, 0.95, 1.0, 1.05, 1.1)
        ]
        for variant, (seconds, mean) in means.items()
    }


@pytest.mark.parametrize(
    ("runs", "word"),
    [
        (on_a_gpu(4.4, 8.7), "holds"),
        (on_a_gpu(4.4, 9.0), "depends"),
        (on_a_gpu(4.6, 9.3), "fails"),
        (on_a_gpu(4.4, 8.7, accuracy=0.93), "fails"),
    ],
)
def test_on_a_gpu_time_counts_only_with_the_accuracy(runs: Runs, word: str):
    verdict = gpu.judge(runs)
    assert verdict.word == word and "times the seconds of airbench94 (the aim: 1.5)" in verdict.sentence
    assert ("does not reach 94%" in verdict.sentence) == (runs["1_worker"][0]["test_accuracy"] < 0.935)
    looked_at(gpu.CLAIM, gpu, runs)


@pytest.mark.parametrize("variant", ["1_worker", "4_workers"])
def test_our_variants_of_the_gpu_run(variant: str, cifar10: Path):
    """The variants run on the CPU here. A run on a GPU has not been tried."""
    found = gpu.run(variant, 0, {**gpu.CLAIM.settings, **gpu.CLAIM.quick, "device": "cpu"})
    assert 0 < found["test_accuracy"] < 1 and found["images_per_s"] == pytest.approx(512 / found["seconds"])


def test_airbench_reads_the_courses_images(cifar10: Path, tmp_path: Path):
    split = load(cifar10, limit=7)[0]
    airbench94.keep(split, tmp_path / "train.pt")
    kept = torch.load(tmp_path / "train.pt", weights_only=True)
    assert kept["images"].shape == (7, 32, 32, 3)
    assert torch.equal(kept["images"][3].permute(2, 0, 1), split.images[3])
    assert torch.equal(kept["labels"], split.labels)
    assert kept["classes"] == []


@pytest.mark.parametrize(
    "command", [["benchmarks", "time-on-gpu", "--quick"], ["benchmarks.speed.rivals.airbench94", "0"]]
)
def test_without_a_gpu_it_says_so_in_a_line(command: list[str], tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert done.returncode > 0 and done.stderr.endswith("needs a GPU: PyTorch sees no GPU here\n")
    assert done.stderr.count("\n") == 1


SAID = """\
install: making a virtual environment in .venv
install: installing the locked dependencies
Collecting numpy
install: downloading the source of horovod==0.28.1
install: installing Horovod
install: ready after 300 s
.venv/bin/python -m lessons --only 00 08
1/2  00_start_here  60 s
2/2  08_assignment  90 s
pages: runs/quick/index.html
.venv/bin/python -m grader check solutions/assignment --no-sandbox --output runs/course
PASSED  100 of 100 points
"""


def test_a_start_is_split_where_its_commands_say_so():
    parts = setup_time.split([(10 * at, line) for at, line in enumerate(SAID.splitlines(), 1)], total=150)
    assert parts == {
        "virtual environment": 20, "locked dependencies": 20, "Horovod, compiled": 10,
        "Horovod and the course, installed": 10, "CIFAR-10": 10, "lesson 00_start_here": 10, "lesson 08_assignment": 10,
        "lessons' pages": 20, "the reference, trained and graded": 40,
    }  # fmt: skip
    source = (REPOSITORY / "source_code" / "install" / "install.py").read_text() + (REPOSITORY / "Makefile").read_text()
    assert all(mark in source for mark in setup_time.BEGINS)  # test_lessons.py looks at the last line of a lesson.
    runs = {variant: [{"parts": parts, "seconds": 150.0}] for variant in setup_time.VARIANTS}
    verdict = setup_time.judge(runs)
    assert verdict.word == "holds" and "make course, empty caches: 2.5 minutes (the aim: 15)" in verdict.sentence
    looked_at(setup_time.CLAIM, setup_time, runs)
    runs["again"][0]["parts"] = parts | {"lesson 03_by_hand": 700}
    verdict = setup_time.judge(runs)
    assert verdict.word == "depends" and "make notebooks, full caches: 12.3 minutes" in verdict.sentence


def test_a_start_types_a_newcomers_commands_in_a_clone():
    found = setup_time.run("bare", 0, setup_time.CLAIM.quick)
    assert list(found["parts"]) == [setup_time.FIRST] and found["seconds"] > 0
    with pytest.raises(RuntimeError, match="target 'nothing'"):
        setup_time._typed(["make", "-C", str(REPOSITORY), "nothing"], {"LC_ALL": "C"})


def test_the_operations_of_an_image_are_two_for_each_multiply_add():
    net = step.nn.Sequential(step.nn.Conv2d(3, 4, 3, padding=1), step.nn.Flatten(), step.nn.Linear(4 * 32 * 32, 5))
    first, last = 2 * 3 * 4 * 9 * 32 * 32, 2 * 4 * 32 * 32 * 5
    assert step.operations(net) == first + last and step.of_a_step(net) == 2 * first + 3 * last


def weights(sleep: bool) -> int:
    """Run on a worker: return a hash of ResNet-9's weights after updates with one grouping of gradients."""
    from benchmarks.speed import loop

    return fingerprint(loop.train(sleep, 1, "resnet9", 8, updates=3)[0].parameters())


def test_ours_computes_what_stock_horovod_computes_to_the_last_bit():
    found = {
        way: on_workers(f"{__name__}:weights", 4, environment, sleep=means["sleep"])
        for way, (environment, means) in communication.HOROVOD.items()
    }
    assert found["ours"] == found["stock"] and len(set(found["ours"])) == 1


def idle(seconds: float) -> list[float]:
    """Run on a worker: measure how the worker behaves while there is nothing to exchange.

    Returns the processor seconds of this time, and the seconds of the exchange that follows.
    """
    from benchmarks.instruments import horovod_ops

    horovod_ops.barrier()
    before = time.process_time()
    time.sleep(seconds)
    used, began = time.process_time() - before, time.perf_counter()
    horovod_ops.barrier()
    return [used, time.perf_counter() - began]


def test_workers_without_a_tensor_hardly_wake_and_begin_at_once_when_there_is_one():
    as_it_is = on_workers(f"{__name__}:idle", 2, AS_IT_IS, seconds=2)
    ours = on_workers(f"{__name__}:idle", 2, {"HOROVOD_IDLE_CYCLE_TIME": "6000"}, seconds=2)
    assert sum(used for used, _ in ours) < 0.3 * sum(used for used, _ in as_it_is)
    # The exchange does not wait for the end of the idle cycle, which comes four seconds later.
    assert max(took for _, took in ours) < 3


def test_a_plain_loop_and_a_step_of_ours_have_a_speed():
    assert step.tutorial("bootcamp", 16, updates=2) > 0
    found = on_workers("benchmarks.speed.comparisons.step:ours", 1, network="bootcamp", updates=1)[0]
    assert found["images_per_s"] > 0 and found["operations"] > 1e6
    assert sum(found["time"].values()) == pytest.approx(1) and found["time"]["convolution"] > 0.05


def test_with_torch_distributed_the_loop_runs_too():
    for way in ("alone", "wait", "ddp"):
        seconds = on_peers("benchmarks.speed.loop:peer", 2, way=way, network="bootcamp", batch_size=16, updates=2)
        assert len(seconds) == 2 and min(seconds) > 0


def store_exchange(folder: Path) -> None:
    for variant, values in exchanging(ours=0.97, wait=0.98, alone=1.0, ddp=0.98, stock=0.5).items():
        for seed, one in enumerate(values):
            content = {"claim": "communication", "arm": variant, "seed": seed, "settings": {"images": 1}, "values": one}
            runner.results.write(folder / "communication" / f"{variant}-{seed}.json", content)


def test_the_page_says_what_is_there_and_what_is_missing(tmp_path):
    store_exchange(tmp_path)
    page.write(tmp_path, tmp_path / "index.html", overhead.described())
    text = (tmp_path / "index.html").read_text()
    assert "10 of 10 aims are met" in text and "provisional: smaller than declared: images, updates" in text
    assert "Not measured yet" in text and "python -m benchmarks speed --only step" in text
    assert text.count("<img") == 1 and "http" not in re.sub('src="data:[^"]*"', "", text.split("<body>")[1])


def test_where_one_way_fails_the_page_shows_what_is_there(tmp_path, monkeypatch):
    def fails(variant, seed, settings):
        raise RuntimeError("the workers are gone")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed", "--quick", "--only", "step"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(step, "CLAIM", dataclasses.replace(step.CLAIM, run=fails))
    folder = tmp_path / "runs" / "benchmarks" / "speed"
    store_exchange(folder)
    with pytest.raises(RuntimeError, match="the workers are gone"):
        main()
    assert "10 of 10 aims are met" in (folder / "index.html").read_text()


def test_the_page_says_what_being_graded_costs():
    message, pairs = overhead.described()["message"], overhead.pairs()
    assert f" over {len(pairs)} pairs, the aim is 5% at most; both runs of a pair end with the same weights" in message
    bare, graded = pairs[0]
    assert "DIFFERENT WEIGHTS" in overhead.sentence([(bare, graded | {"weights": 1})])


def test_a_wrong_name_is_one_line():
    command = [sys.executable, "-m", "benchmarks", "speed", "--only", "light"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "communication" in done.stderr
    with pytest.raises(KeyError):
        speed.get("light")
