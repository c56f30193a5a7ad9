"""The function exercises are tested without a sandbox: test cases, references, named mistakes and public answers."""

import inspect
import math
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.validator import Validator

from grader import exercises
from grader.exercises import Checked, Compared, scoring, test_cases
from grader.exercises.call_results import CallResult, of_call, read, shown
from grader.exercises.compare import Tolerance, difference
from grader.exercises.public_check import check_public
from grader.sandbox.guest_scripts.call_functions import UnfitError, called, plain
from tests.conftest import REPOSITORY

KEYS = [f"key {number}" for number in range(12)]
COMPARED = [id for id in exercises.ids() if isinstance(exercises.get(id), Compared)]
# These exercises are arithmetic that needs no paper.
UNCITED = {"batch_time", "pipeline_rate", "share_lost", "step_time", "updates_made", "workers_needed", "worth_having"}
MISTAKES = [(id, mistake.name) for id in COMPARED for mistake in exercises.get(id).mistakes]


def judged(id: str, function: Callable, key: str = "a key", reveal: bool = False) -> scoring.Score:
    drawn = test_cases.draw(exercises.get(id), key)
    return scoring.score(drawn, [of_call(function, call) for call in drawn.calls], reveal)


def mistake_of(id: str, name: str) -> exercises.Mistake:
    return next(mistake for mistake in exercises.get(id).mistakes if mistake.name == name)


@pytest.mark.parametrize("id", exercises.ids())
def test_an_exercise_is_whole(id: str):
    exercise = exercises.get(id)
    names = [name.split(":")[0].strip() for name in exercise.signature.partition("(")[2].partition(")")[0].split(", ")]
    drawn = exercise.draw(np.random.default_rng(0))
    assert exercise.id == id and exercise.function.isidentifier() and 3 <= exercise.points <= 5
    assert all(list(call) == names for case in drawn for call in case.calls)
    assert {case.group for case in drawn} == set(exercise.groups)
    assert ("arXiv:" in exercise.statement) == (id not in UNCITED)
    if isinstance(exercise, Compared):
        assert list(inspect.signature(exercise.reference).parameters) == names


def test_an_unknown_exercise_is_a_key_error():
    with pytest.raises(KeyError):
        exercises.get("unknown")


@pytest.mark.parametrize("id", exercises.ids())
def test_the_key_decides_all_test_cases(id: str):
    drawn = {key: test_cases.draw(exercises.get(id), key) for key in [*KEYS, test_cases.PUBLIC_KEY]}
    assert drawn[KEYS[0]] == test_cases.draw(exercises.get(id), KEYS[0])
    assert len({drawn[key].model_dump_json() for key in drawn}) == len(drawn)


def test_a_hidden_test_case_is_no_public_one():
    drawn_wholly = {"squared_error", "step_time", "compare_arms", "updates_made"}
    for id in ("average_gradients", "ring_step", "noise_scale", "trust_ratio", "bug_zoo", *drawn_wholly):
        public = [str(call) for call in test_cases.public(id).calls]
        assert not set(public) & {str(call) for call in test_cases.draw(exercises.get(id), "a key").calls}


@pytest.mark.parametrize("id", COMPARED)
def test_the_reference_gets_all_points_for_any_key(id: str):
    for key in KEYS:
        result = judged(id, exercises.get(id).reference, key)
        assert (result.points, result.note) == (exercises.get(id).points, "")
        assert all(group.right == group.cases and not group.difference + group.advice for group in result.groups)


@pytest.mark.parametrize(("id", "name"), MISTAKES)
def test_a_named_mistake_is_named_for_any_key(id: str, name: str):
    mistake = mistake_of(id, name)
    for key in KEYS:
        result = judged(id, mistake.function, key)
        assert result.points < result.max
        assert {group.advice for group in result.groups} - {""} == {mistake.sentence}


@pytest.mark.parametrize(
    ("id", "name", "points"),
    [
        ("average_gradients", "unweighted mean", [1, 0, 0.33]),
        ("average_gradients", "sum by images", [0, 0, 0]),
        ("ring_step", "backwards", [0, 0, 0.5]),
        ("ring_step", "always own", [1, 0, 0.5]),
        ("ring_step", "from the start", [1, 0, 0.5]),
        ("ring_plan", "same", [0, 0, 0.5]),
        ("ring_plan", "late", [2, 1, 0.5]),
        ("ring_plan", "restarted", [2, 0, 0.5]),
        ("noise_scale", "inverse", [0, 0]),
        ("warmup_factor", "endless", [2, 0.33, 0.5]),
        ("warmup_factor", "no warmup", [0, 1, 1]),
        ("trust_ratio", "without decay", [1, 0, 0.67]),
        ("trust_ratio", "undefined", [1, 2, 0]),
        ("bug_zoo", "any difference", [1, 1, 1, 1, 0]),
        ("bug_zoo", "incomplete", [0.5, 1, 1, 1, 1]),
        ("squared_error", "sample", [0, 0, 0.33]),
        ("squared_error", "first number", [1, 0, 0.67]),
        ("squared_error", "without replacement", [0, 0, 0.67]),
        ("step_time", "through the origin", [0, 0, 0]),
        ("step_time", "first and last", [1, 0, 0]),
        ("pipeline_rate", "never overlapped", [1, 0, 1]),
        ("pipeline_rate", "exchanged", [0, 0, 1]),
        ("workers_needed", "all divided", [1, 0, 0]),
        ("workers_needed", "rounded down", [1, 0, 1]),
        ("workers_needed", "one image always fits", [1, 1, 0]),
        ("traffic", "broadcast once", [0, 2, 1]),
        ("traffic", "one phase", [1, 0, 1]),
        ("traffic", "to itself", [0, 0, 0]),
        ("rate_at", "floor", [1, 1, 1.43]),
        ("rate_at", "late", [1, 0.71, 1.43]),
        ("rate_at", "once", [1, 0.57, 1.14]),
        ("compare_arms", "population", [1, 1, 1, 1]),
        ("compare_arms", "certain", [1, 0, 1, 1]),
        ("compare_arms", "unchecked", [1, 1, 2, 0]),
        ("compare_arms", "pooled", [1, 1, 1, 1]),
        ("compare_arms", "standard deviation", [0.33, 1, 1, 1]),
        ("rates_to_try", "only the tried", [1, 0, 1]),
        ("rates_to_try", "only higher", [0, 1, 0.75]),
        ("rates_to_try", "newest", [1, 0.5, 0.25]),
        ("effective_batch", "always", [1, 1, 0]),
        ("effective_batch", "seeds alone", [0.5, 1, 2]),
        ("effective_batch", "both", [0.5, 0, 2]),
        ("updates_made", "floor", [1, 0, 1]),
        ("updates_made", "leftovers", [1, 1, 0]),
        ("updates_made", "one worker", [0, 0, 0]),
        ("worth_having", "one too many", [0, 0, 0.33]),
        ("worth_having", "messages alone", [1, 0, 0.67]),
        ("worth_having", "never agreeing", [1, 0, 1]),
        ("share_lost", "one worker", [1, 0]),
        ("share_lost", "a whole interval", [0, 0]),
        ("bytes_on_each", "all divided", [1, 0, 1]),
        ("bytes_on_each", "weights first", [1, 0, 1]),
        ("bytes_on_each", "one stage early", [0, 0, 1]),
        ("bytes_on_each", "one stage late", [1, 0, 0]),
        ("batch_time", "half of all", [1, 1, 0, 1]),
        ("batch_time", "never beside", [1, 0, 1, 1]),
        ("batch_time", "hidden", [1, 0.5, 1, 1]),
        ("batch_time", "all by four", [1, 1, 1, 0]),
    ],
)
def test_a_mistake_costs_its_own_points(id: str, name: str, points: list[float]):
    assert [group.points for group in judged(id, mistake_of(id, name).function).groups] == points


def test_a_mistake_is_not_named_where_other_answers_speak_against_it():
    def counts_the_runs_of_a_only(a: list[float], b: list[float]) -> str:
        wrong = mistake_of("compare_arms", "unchecked").function
        return "too few runs" if len(a) < 2 else wrong(a, b)

    edge = judged("compare_arms", counts_the_runs_of_a_only).groups[3]
    assert (edge.right, edge.cases, edge.advice) == (2, 3, "")
    assert edge.difference.startswith("compare_arms([") and edge.difference.endswith("it should be another text")


def test_a_simulation_is_told_that_the_exact_result_is_asked_for():
    draw = np.random.default_rng(0)

    def simulated(gradients: list[list[float]], batch: int) -> float:
        means = np.array(gradients)[draw.integers(len(gradients), size=(4000, batch))].mean(axis=1)
        return float(np.square(means - np.mean(gradients, axis=0)).sum(axis=1).mean())

    result = judged("squared_error", simulated)
    assert {group.advice for group in result.groups if group.points < group.max} == {scoring.NEAR_ADVICE}


def test_one_answer_to_all_calls_is_shown_with_a_call_that_needs_another():
    """The text names the first call whose answer is wrong. The other wrong calls would say the same again."""
    text = scoring.as_text(judged("bug_zoo", lambda symptoms: "no broadcast", reveal=True))
    assert "One answer to all calls earns no points." in text
    assert text.count("expected: ") == 1 and "expected: 'identical shards'" in text


@pytest.mark.parametrize("id", exercises.ids())
@pytest.mark.parametrize("answer", [1, 1.0, "no broadcast", [0], [], True])
def test_a_function_that_always_answers_alike_gets_nothing(id: str, answer: object):
    result = judged(id, lambda *arguments: answer)
    assert result.points == 0 and result.note.startswith("Whatever it was asked, the function gave")


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, NotImplementedError, SystemExit])
def test_a_function_that_always_fails_gets_nothing(error: type):
    def fail(*arguments: object):
        raise error("not yet")

    for id in exercises.ids():
        result = judged(id, fail)
        assert (
            result.points == 0
            and result.note == f"Whatever it was asked, the function raised {error.__name__}: not yet"
        )


def test_hidden_answers_are_not_shown_and_public_ones_are():
    wrong = mistake_of("trust_ratio", "inverse").function
    hidden, revealed = (judged("trust_ratio", wrong, reveal=reveal).groups[0].difference for reveal in (False, True))
    drawn = test_cases.draw(exercises.get("trust_ratio"), "a key").cases[0]
    right = f"{drawn.right.value:.6g}"
    assert right not in hidden and "times as large" in hidden
    assert f"expected: {right}" in revealed
    assert f"gave {wrong(**drawn.calls[0]):.6g}" in hidden


def test_the_bug_zoos_runs_keep_what_the_statement_promises():
    for key in KEYS:
        for call in test_cases.draw(exercises.get("bug_zoo"), key).calls:
            run = call["symptoms"]
            whole = run["distinct_images"] if run["used_images"] > run["train_images"] else run["used_images"]
            assert 0.97 * run["train_images"] <= whole <= run["train_images"]
            assert run["test_images"] % run["workers"] != 0
            assert 0 < run["reported_accuracy"] < 1


def test_the_compared_arms_are_as_far_apart_as_their_groups_say():
    """NumPy computes how many standard errors the two arms differ by.

    Near the border, the answer depends on which of two definitions of the variance is used.
    """
    for key in KEYS:
        for case in test_cases.draw(exercises.get("compare_arms"), key).cases[:-3]:
            a, b = case.calls[0].values()
            errors, biased = (
                abs(np.mean(a) - np.mean(b)) / math.hypot(*(np.std(arm, ddof=ddof) / len(arm) ** 0.5 for arm in (a, b)))
                for ddof in (1, 0)
            )
            least, most = {"clear differences": (2.9, 10), "within the noise": (0, 1.7)}.get(case.group, (1.7, 2.4))
            assert least < errors < most and abs(errors - 2) > 0.01
            assert (errors > 2) == (case.right.value != "no difference seen")
            assert case.group != "near the border" or biased > 2


def test_the_squared_error_is_that_of_drawn_batches():
    """The mean over all batches of two that can be drawn agrees with the formula. All batches are equally likely."""
    gradients = [[1.0, -2.0], [4.0, 0.5], [-3.0, 2.5]]
    pairs = np.array([np.add(one, other) / 2 for one in gradients for other in gradients])
    measured = np.square(pairs - np.mean(gradients, axis=0)).sum(axis=1).mean()
    assert exercises.get("squared_error").reference(gradients, 2) == pytest.approx(measured)


def test_a_search_ends_where_both_neighbours_are_worse():
    """Accuracy is highest at a rate of 0.64, and the search begins at 0.01. It trains with each rate once."""
    new, tried = [0.01], {}
    while new:
        tried |= {rate: -abs(math.log2(rate / 0.64)) for rate in new}
        new = exercises.get("rates_to_try").reference(list(tried), list(tried.values()))
    assert list(tried) == [0.01, 0.005, *(0.01 * 2**step for step in range(1, 8))]


def test_the_ring_sends_what_its_steps_send():
    """The steps of the exercise ring_step are made, and the chunks that change are counted.

    Each chunk is sent once for the sums, and once more for the results.
    """
    workers, length, number = 4, 3, 8  # A chunk has 3 numbers, and each number has 8 bytes.
    chunks = [[[rank + 1.0] * length for _ in range(workers)] for rank in range(workers)]
    sent = 0
    for step in range(workers - 1):
        after = exercises.get("ring_step").reference(chunks, step)
        sent += int((np.array(after) != np.array(chunks)).any(axis=-1).sum())
        chunks = after
    size = workers * length * number
    assert sum(exercises.get("traffic").reference("ring", workers, size)) == 2 * sent * length * number


# These are right shards in several styles, and wrong shards with the sentences about them.


def by_random(count: int, rank: int, size: int, seed: int, epoch: int) -> list[int]:
    order = list(range(count))
    random.Random(f"{seed} {epoch}").shuffle(order)
    return order[rank : count - count % size : size]


def by_numpy(count: int, rank: int, size: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)[: count // size * size].reshape(size, -1)[rank]


def by_torch(count: int, rank: int, size: int, seed: int, epoch: int) -> torch.Tensor:
    order = torch.randperm(count, generator=torch.Generator().manual_seed(1000 * seed + epoch))
    return order[: count // size * size].chunk(size)[rank]


@pytest.mark.parametrize("function", [by_random, by_numpy, by_torch])
def test_shards_are_right_in_any_style(function: Callable):
    for key in KEYS:
        result = judged("shard_indices", function, key)
        assert (result.points, result.max) == (5, 5)


def everybody_all(count, rank, size, seed, epoch):
    return by_random(count, 0, 1, seed, epoch)


def everybody_the_same(count, rank, size, seed, epoch):
    return by_random(count, 0, size, seed, epoch)


def seeded_by_rank(count, rank, size, seed, epoch):
    return by_random(count, rank, size, seed + rank, epoch)


DRAWN = random.Random(1)  # The seed is fixed, because by chance two random shards may fit together.


def unseeded(count, rank, size, seed, epoch):
    return DRAWN.sample(range(count), count // size)


def unequal(count, rank, size, seed, epoch):
    return by_numpy(count, 0, 1, seed, epoch)[rank::size]


def unshuffled(count, rank, size, seed, epoch):
    return list(range(rank, count // size * size, size))


def without_epoch(count, rank, size, seed, epoch):
    return by_random(count, rank, size, seed, 0)


def without_seed(count, rank, size, seed, epoch):
    return by_random(count, rank, size, 0, epoch)


def ascending(count, rank, size, seed, epoch):
    return sorted(by_random(count, rank, size, seed, epoch))


def never_the_last(count, rank, size, seed, epoch):
    return by_random(count // size * size, rank, size, seed, epoch)


def handed_on(count, rank, size, seed, epoch):
    return by_random(count, (rank + epoch) % size, size, seed, 0)


def within_the_shard(count, rank, size, seed, epoch):
    own = unshuffled(count, rank, size, seed, epoch)
    return [own[at] for at in by_random(len(own), 0, 1, seed, epoch)]


def with_replacement(count, rank, size, seed, epoch):
    return np.random.default_rng([seed, epoch, rank]).integers(0, count // size, count // size)


def from_one(count, rank, size, seed, epoch):
    return [index + 1 for index in by_random(count, rank, size, seed, epoch)]


def as_floats(count, rank, size, seed, epoch):
    return by_numpy(count, rank, size, seed, epoch) / 1


def one_number(count, rank, size, seed, epoch):
    return rank


@pytest.mark.parametrize(
    ("function", "points", "advice"),
    [
        (everybody_all, [0.5, 0, 0], "Divide the images"),
        (everybody_the_same, [0.5, 0, 1.33], "Identical shards"),
        (seeded_by_rank, [0.5, 0, 1.33], "rank has no say in it"),
        (unseeded, [0.5, 0, 0], "Make a generator of your own"),
        (unequal, [2, 0, 1.33], "equally many"),
        (unshuffled, [2, 1, 0], "let epoch change the order"),
        (without_epoch, [2, 1, 0], "let epoch change the order"),
        (without_seed, [2, 1, 0.67], "let seed change the order"),
        (ascending, [2, 1, 0], "do not sort it again"),
        (within_the_shard, [2, 1, 0], "Shuffle all images, then cut"),
        (never_the_last, [2, 1, 1.33], "else some are never used"),
        (handed_on, [2, 1, 1.33], "only change hands"),
        (with_replacement, None, "do not draw images one by one"),
        (from_one, None, "from 0 to count - 1"),
        (as_floats, [0, 0, 0], "An index is a whole number"),
        (one_number, [0, 0, 0], "Return a list of whole numbers."),
    ],
)
def test_wrong_shards_lose_their_own_points_and_are_explained(function: Callable, points: list | None, advice: str):
    result = judged("shard_indices", function)
    assert points is None or [group.points for group in result.groups] == points
    assert result.points < 5 and any(advice in group.advice for group in result.groups)


# These tests are about the feedback on answers, and about what an answer may be.


@pytest.mark.parametrize(
    ("value", "right", "said"),
    [
        (2.0, 2, ""),
        (2.00001, 2.0, ""),
        (1e-9, 0, ""),
        ([1, [2.0]], [1.0, [2]], ""),
        ("no broadcast", "no broadcast", ""),
        (1, 2, "it should be about 2 times as large"),
        (1, 12.3, "it should be about 10 times as large"),
        (4, 1, "it should be about 0.2 times as large"),
        (1, 1.3, "it should be about 30 % larger in size"),
        (-1, -0.9, "it should be about 10 % smaller in size"),
        (1, -1, "it should be of the other sign"),
        (1, 0, "it should be 0"),
        (0, 1, "it should be other than 0"),
        (5e-324, 1e300, "it should be about inf times as large"),
        ([1, 2], [1, 2, 3], "it should have 3 elements, not 2"),
        ([[1, 2], [3, 4]], [[1, 2], [3, 8]], "[1][1] should be about 2 times as large"),
        ([1, "a"], [1, 2], "[1] should be a number, not a text"),
        (True, 1, "it should be a number, not True or False"),
        ([3], 3, "it should be a number, not a list"),
        ("a", "b", "it should be another text"),
    ],
)
def test_a_difference_is_told_without_the_answer(value: object, right: object, said: str):
    assert difference(CallResult(value=value), CallResult(value=right), Tolerance(1e-4, 1e-6)) == said


@pytest.mark.parametrize(
    ("value", "passed_on"),
    [
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.arange(3), [0, 1, 2]),
        (torch.tensor([[1.0, 2.0]], requires_grad=True), [[1.0, 2.0]]),
        (torch.tensor(3), 3),
        ((1, [np.int64(2), "x"]), [1, [2, "x"]]),
        (range(2), [0, 1]),
    ],
)
def test_arrays_and_tensors_are_answers(value: object, passed_on: object):
    assert plain(value) == passed_on and type(plain(value)) is type(passed_on)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "is a return missing?"),
        ({"a": 1}, "holds a dict"),
        ({1}, "holds a set"),
        (1j, "holds a complex"),
        ([1, float("nan")], "nan, which is no finite number"),
        (torch.tensor([1.0, float("inf")]), "inf, which is no finite number"),
        (10**30, "beyond 64 bits"),
        ([[[[[[[1]]]]]]], "nested more than 6 deep"),
        ([0] * 3000, "3,000 elements"),
        ("x" * 5000, "5,002 bytes"),
        ((number for number in [1]), "holds a generator"),
    ],
)
def test_anything_else_is_none(value: object, reason: str):
    assert reason in called(lambda: value, {})["none"]


def test_a_list_in_itself_is_no_answer():
    endless: list = []
    endless.append(endless)
    with pytest.raises(UnfitError):
        plain(endless)


def test_a_function_may_change_its_arguments():
    call = {"chunks": [[[1], [2]], [[3], [4]]], "step": 0}

    def spoil(chunks: list, step: int) -> int:
        chunks.clear()
        return step

    assert called(spoil, call) == {"value": 0} and len(call["chunks"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        None, 3, "", "{", "[]", "{}", "null", '{"value": null}', '{"value": NaN}', '{"value": 1e999}', '{"value": {}}',
        '{"value": 1, "none": "x"}', '{"value": 1, "points": 5}', '{"raised": 3}', '{"raised": "' + "x" * 301 + '"}',
        '{"value": ' + "[" * 100_000, '{"value": ' + "9" * 5000 + "}",
    ],
)  # fmt: skip
def test_text_that_is_no_result_is_no_answer(text: object):
    assert read(text) == CallResult(none="what came out of the sandbox is no answer")


def test_what_is_shown_is_short_and_cannot_steer_a_terminal():
    assert shown("\x1b[2J\u202e<b>\ud800\n" + "x" * 1000) == " [2J <b>  " + "x" * 386 + " ..."


# These tests are about the files that a learner has.


def test_the_public_test_cases_are_up_to_date():
    assert test_cases.PUBLIC.read_text() == test_cases.public_text(), "run: python -m grader.exercises"


@pytest.mark.parametrize("id", exercises.ids())
def test_the_public_suite_is_the_drawn_one(id: str):
    exercise, public = exercises.get(id), test_cases.public(id)
    examples = 1 if id in COMPARED else 0
    assert public == test_cases.draw_public(exercise)
    assert public.cases[examples:] == test_cases.draw(exercise, test_cases.PUBLIC_KEY).cases
    assert sum(public.groups.values()) == exercise.points


def test_nbgraders_validate_shows_what_is_wrong(tmp_path: Path):
    """nbgrader's own Validator executes a notebook with a real check cell, and reports what the cell says."""
    body = "def updates_made(images, batch, workers, epochs):\n    return images // batch // workers * epochs"
    check = "from grader.exercises.public_check import check_public\ncheck_public('updates_made', updates_made)"
    cells = [new_code_cell(body), new_code_cell(check)]
    graded = {"grade": True, "grade_id": "check", "locked": False, "schema_version": 3, "solution": False, "points": 3}
    cells[1].metadata["nbgrader"] = {**graded, "task": False, "cell_type": "code"}
    path = tmp_path / "notebook.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": ""}}), path)
    (failed,) = Validator().validate(str(path))["failed"]
    assert "ok    the example: 1 of 1 calls" in failed["raw_error"]
    assert "The last, smaller batch of a shard makes an update, too: round up." in failed["raw_error"]


@pytest.mark.parametrize("id", COMPARED)
def test_a_learner_sees_that_the_function_is_right(id: str, capsys):
    assert check_public(id, exercises.get(id).reference) == exercises.get(id).points
    assert "wrong" not in capsys.readouterr().out


def test_a_learner_sees_what_is_wrong(capsys):
    mistake = mistake_of("average_gradients", "unweighted mean")
    assert check_public("average_gradients", mistake.function) == 1.33, "nbgrader reads it as partial credit"
    said = capsys.readouterr().out
    assert (
        "1.33 of 4 points" in said and "ok    equal shards: 3 of 3" in said and "wrong unequal shards: 0 of 4" in said
    )
    assert "expected: [" in said and "weigh each worker's gradient by its number of images" in said


def test_a_function_that_writes_to_stderr_keeps_its_points(capsys):
    """nbgrader gives no points to a cell that writes to stderr."""

    def noisy(*arguments):
        print("a warning", file=sys.stderr)
        return exercises.get("trust_ratio").reference(*arguments)

    assert check_public("trust_ratio", noisy) == exercises.get("trust_ratio").points
    said = capsys.readouterr()
    assert "a warning" in said.out and said.err == ""


def test_a_learners_copy_needs_no_reference(tmp_path: Path):
    left_out = shutil.ignore_patterns("*.pyc", *(f"{id}.py" for id in COMPARED))
    shutil.copytree(REPOSITORY / "grader", tmp_path / "grader", ignore=left_out)
    program = (
        "from grader.exercises import public_check\n"
        "assert public_check.check_public('trust_ratio', lambda weights, direction, decay: 2 * decay) < 1\n"
        "assert public_check.check_public('shard_indices', lambda count, rank, size, seed, epoch: [rank]) == 0\n"
        "print(public_check.__file__)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(str(tmp_path))


def test_only_an_exercise_without_answers_is_judged_by_its_properties():
    checked = [exercises.get(id) for id in exercises.ids() if id not in COMPARED]
    assert all(isinstance(exercise, Checked) for exercise in checked)
    assert [exercise.id for exercise in checked] == ["shard_indices"]


def test_in_a_notebook_the_cell_is_tried_by_itself_as_the_grader_will():
    """A real kernel runs the cell.

    An import in another cell works in the notebook, but it would not work in the grader.
    """
    body = "def trust_ratio(weights, direction, decay):\n    above = np.linalg.norm(weights)\n"
    body += "    below = np.linalg.norm(np.add(direction, np.multiply(decay, weights)))\n"
    body += "    return above / below if above * below else 1.0"
    check = "from grader.exercises.public_check import check_public\ncheck_public('trust_ratio', trust_ratio)"
    cells = [
        "import numpy as np",
        body,
        check,
        "import numpy as np\n" + body,
        check,
        "print(np.pi, trust_ratio([1], [1], 0))",
    ]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, iopub_timeout=60).execute()
    first, second = ([output.get("text", "") for output in notebook.cells[at].outputs] for at in (2, 4))
    assert "NameError: name 'np' is not defined" in first[0] and scoring.ALONE in first[0]
    points = [notebook.cells[at].outputs[-1].data["text/plain"] for at in (2, 4)]
    assert float(points[0]) < exercises.get("trust_ratio").points == float(points[1])
    assert "wrong" not in second[0] and notebook.cells[5].outputs[0].text.startswith("3.14")
