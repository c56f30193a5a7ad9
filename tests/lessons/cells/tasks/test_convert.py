"""A learner converts a program step by step, and each check says what the four workers do now."""

from pathlib import Path

import pytest

from lessons.cells.launches.observed_worker import Observed
from lessons.cells.launches.running import SOURCE, RunError
from lessons.cells.tasks import convert
from lessons.cells.tasks.convert import IMAGES, TEST_IMAGES, WORKERS, begin, check, steps

NAMES = ("know", "shards", "weights", "start", "random", "test", "writes")


def right() -> list[Observed]:
    """Return what is observed of a right program."""
    return [
        Observed(
            True, seed=rank, broadcasts=1, start_hash=1, hashes=[2, 3], images=[list(range(rank, IMAGES, WORKERS))] * 2,
            test_images=list(range(rank, TEST_IMAGES, WORKERS)), correct=rank,
            files=["metrics.jsonl", "model.pt.part"] if rank == 0 else ["other"],
        )
        for rank in range(WORKERS)
    ]  # fmt: skip


ACCURACY = sum(range(WORKERS)) / TEST_IMAGES


def missing(workers: list[Observed], accuracy: float = ACCURACY) -> dict[str, str]:
    """Return what is said of each step that is not done."""
    judged = dict(zip(NAMES, steps(workers, accuracy), strict=True))
    return {name: step.seen for name, step in judged.items() if not step.met}


def test_a_right_program_has_all_steps():
    assert not missing(right())


@pytest.mark.parametrize(
    ("change", "step", "said"),
    [
        ({"initialised": False}, "know", "1 of 4 programs know nothing"),
        ({"images": [[], []]}, "shards", "64 of 256 images are not used"),
        ({"hashes": [2, 9]}, "weights", "2 different networks"),
        ({"start_hash": 9}, "start", "2 different networks"),
        ({"broadcasts": 0}, "start", "the same random numbers"),
        ({"seed": 0}, "random", "have 3 different seeds"),
        ({"test_images": list(range(TEST_IMAGES))}, "test", "counted up to 2 times"),
        ({"files": ["metrics.jsonl"]}, "writes", "Workers 0, 1 write"),
    ],
)
def test_a_step_that_is_missing_is_told(change: dict, step: str, said: str):
    workers = right()
    for name, value in change.items():
        setattr(workers[1], name, value)
    found = missing(workers)
    assert said in found[step]


def test_the_accuracy_of_one_worker_is_not_that_of_all():
    assert list(missing(right(), accuracy=0.5)) == ["test"]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Collect what is displayed, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    found = []
    monkeypatch.setattr(convert, "display", lambda made: found.append(made.data))
    return found


@pytest.mark.slow
def test_the_program_of_one_worker_has_no_step_on_four(shown: list[str], cifar10: Path):
    assert begin() == begin() == convert.MINE
    found = check()
    assert not any(step.met for step in found), [step.goal for step in found if step.met]
    assert "0 of 7 steps are done" in shown[0] and "4 of 4 programs know nothing" in shown[0]


def test_the_program_of_the_lesson_has_all_steps(shown: list[str], cifar10: Path):
    assert all(step.met for step in check(SOURCE / "cifar_base.py")), shown
    assert "7 of 7 steps are done" in shown[0]


def test_a_program_that_fails_is_told_with_its_last_line(shown: list[str], cifar10: Path):
    begin().write_text("import horovod.torch as hvd\n\nhvd.innit()\n")
    with pytest.raises(RunError, match=r"my_workers.py failed on 4 workers(.|\n)*has no attribute 'innit'"):
        check()
