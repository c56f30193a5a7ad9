"""An instructor is told of lines that may be worth reading, and of no line of a plain program."""

from pathlib import Path

import pytest

from grader.submission.worth_a_look import MAX_LINES, worth_a_look
from tests.support.submission_suite import submissions

HIDDEN = {  # hostile in what they compute or write, with nothing unusual in their code
    "inflated_metrics", "trains_on_the_test_images", "trains_on_the_test_images_every_other_epoch", "endless_loop",
    "endless_output", "one_network_each", "follows_rank_0", "decoy_network", "embedded_weights", "closed_form",
    "forged_exit_status", "invented_metrics", "huge_metrics", "linked_checkpoint",
    "markup", "memory_hog", "full_disk", "zip_bomb_checkpoint", "goes_back_to_the_best_weights",
    "goes_back_nearly_to_the_best_weights", "warms_up_an_empty_group", "calls_sgd_by_another_name",
}  # fmt: skip
RIGHT = [one for one in submissions() if one.kind == "right" and one.name != "closure"]  # see the last test
HOSTILE = [one for one in submissions() if one.kind == "hostile" and one.name not in HIDDEN]


@pytest.mark.parametrize("submission", RIGHT, ids=lambda one: one.name)
def test_no_line_of_a_right_program_is_named(submission, tmp_path: Path):
    submission.write(tmp_path / "in")
    assert worth_a_look(tmp_path / "in") == []


@pytest.mark.parametrize("submission", HOSTILE, ids=lambda one: one.name)
def test_a_program_that_touches_the_grader_or_other_processes_is_named(submission, tmp_path: Path):
    submission.write(tmp_path / "in")
    assert worth_a_look(tmp_path / "in")


@pytest.mark.parametrize(
    "line",
    ["import gc", "from os import kill", "os.fork()", "x = '/proc/1/fd'", "exec('1')", "import ctypes.util as c",
     "print(os.environ)", "sys.modules['torch']", "os.environ['LD_PRELOAD'] = 'x'"],
)  # fmt: skip
def test_the_file_the_number_and_the_line_are_told(line: str, tmp_path: Path):
    (tmp_path / "help.py").write_text(f"import torch\n{line}\n")
    assert worth_a_look(tmp_path) == [f"help.py, line 2: {line}"]


def test_images_that_are_taken_from_a_split_without_batch_are_told(tmp_path: Path):
    (tmp_path / "train.py").write_text(
        "train, test = load(folder)\nx = test.images[3]\ny = args.images\nlen(test), test.images.shape\n"
    )
    assert worth_a_look(tmp_path) == ["train.py, line 2: x = test.images[3]"]


@pytest.mark.parametrize("line", ["os.environ['HOROVOD_RANK']", "os.environ.get('RANK', 0)", "os.getenv('RANK')"])
def test_reading_one_variable_of_the_environment_is_usual(line: str, tmp_path: Path):
    (tmp_path / "train.py").write_text(f"import os\n{line}\n")
    assert worth_a_look(tmp_path) == []


@pytest.mark.parametrize("text", ["for", "\0", "(" * 10_000, "x = '\ud800'"])
def test_what_python_cannot_read_is_no_trouble(text: str, tmp_path: Path):
    (tmp_path / "train.py").write_text(text, errors="surrogatepass")
    assert worth_a_look(tmp_path) == []


def test_a_long_program_does_not_flood_the_page(tmp_path: Path):
    (tmp_path / "train.py").write_text("import gc\n" * 1000)
    assert len(worth_a_look(tmp_path)) == MAX_LINES


@pytest.mark.parametrize(
    ("line", "named"),
    [("optimizer.step(put)", True), ("optimizer.step(closure=put)", True), ("optimizer.step(lambda: loss)", True),
     ("optimizer.register_step_post_hook(put)", True), ("scheduler.step(loss)", False),
     ("scaler.step(optimizer)", False)],
)  # fmt: skip
def test_what_runs_within_a_step_is_named(line: str, named: bool, tmp_path: Path):
    (tmp_path / "help.py").write_text(f"def put():\n    pass\n\n\n{line}\n")
    assert worth_a_look(tmp_path) == ([f"help.py, line 5: {line}"] if named else [])
