"""One process that simulates several workers computes the same as real Horovod workers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.claims.lesson_07.c32_techniques import recipe
from benchmarks.experiment.dataset import data, first
from benchmarks.instruments.simulated_workers import train
from tests.conftest import RUN_SECONDS

SCRIPTS = Path(__file__).parents[3] / "source_code"
SETTINGS = {"images": 1024, "batch_size": 64, "epochs": 2, "device": "cpu"}


SLOW = pytest.mark.slow


@pytest.mark.parametrize("lesson", [pytest.param("base", marks=SLOW), pytest.param("warmup", marks=SLOW), "lamb"])
def test_a_team_is_as_its_workers(lesson, tmp_path):
    """The weights are equal except for rounding.

    bfloat16 gradients are summed in another order, and Adam divides by small numbers.
    """
    script = {"base": "cifar_base.py", "warmup": "cifar_warmup.py", "lamb": "cifar_lamb.py"}[lesson]
    options = ["--images", "1024", "--batch-size", "64", "--epochs", "2", "--output-dir", tmp_path, "--device", "cpu"]
    horovodrun = Path(sys.executable).parent / "horovodrun"
    command = [horovodrun, "-np", "2", sys.executable, SCRIPTS / script, *options]
    subprocess.run(command, check=True, capture_output=True, timeout=RUN_SECONDS)
    real = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    parts = data(SETTINGS)
    seen = train(recipe(f"2-{lesson}", 0, SETTINGS), parts, 0).epochs
    for mine, theirs in zip(seen, real, strict=True):
        assert mine["train_loss"] == pytest.approx(theirs["train_loss"], rel=1e-2)
        assert mine["test_accuracy"] == pytest.approx(theirs["test_accuracy"], abs=0.03)


def test_equal_seeds_give_equal_runs_and_other_seeds_others():
    train_part, test_part = data(SETTINGS)
    small = train_part, first(test_part, 100)
    runs = [train(recipe("2-bn", seed, SETTINGS), small, seed).losses for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
